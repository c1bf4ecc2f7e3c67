// ollama: System One at /v1/systemone, and what its users look around with.
import { Ollama } from "ollama";
import {
  ask, check, done, KEY, KEYED_SERVER, MISTAKE, PICTURE_BASE64, PICTURE_URL, QUESTIONS, request,
  require, requireAnswers, requireEqual, STATE, TOO_MANY_OPTIONS, SERVER,
} from "./harness.mjs";

const client = new Ollama({ host: SERVER });

function requireResponse(response, expected) {
  requireAnswers(response.answers, expected.answers);
  requireEqual(response.usage.input_tokens, expected.usage.input_tokens, "input_tokens");
  require(response.model, "no model");
}

// The client's error class is not exported.
async function requireResponseError(call, status, ...texts) {
  let error;
  try {
    await call();
  } catch (raised) {
    error = raised;
  }
  require(error?.name === "ResponseError", `${error?.name}: ${error?.message}`);
  require(typeof error.error === "string", `error is ${JSON.stringify(error.error)}, not a text`);
  requireEqual(error.status_code, status, "status");
  for (const text of texts) require(error.message.includes(text), `${error.message}: no ${text}`);
}

await check("text", async () => {
  requireResponse(await client.systemone({ model: "clef-flash", ...request() }), ask(request()));
});

await check("picture", async () => {
  const response = await client.systemone(
    { model: "clef-flash:latest", ...request(), images: [PICTURE_BASE64], keep_alive: "5m" });
  requireResponse(response, ask(request({ images: [PICTURE_URL] })));
});

await check("the confidence of Ollama's own server", async () => {
  const response =
    await client.systemone({ model: "clef-flash", ...request(), x_confidence: "entropy" });
  requireResponse(response, ask(request(), "entropy"));
});

await check("mistake", async () => {
  const team = { ...QUESTIONS.team, criteria: TOO_MANY_OPTIONS };
  await requireResponseError(
    () => client.systemone({ model: "clef-flash", state: STATE, questions: { team } }), 422,
    "questions.team", MISTAKE);
});

await check("key", async () => {
  const right = new Ollama({ host: KEYED_SERVER, headers: { Authorization: `Bearer ${KEY}` } });
  requireResponse(await right.systemone({ model: "clef-flash", ...request() }), ask(request()));
  const none = new Ollama({ host: KEYED_SERVER });
  await requireResponseError(() => none.systemone({ model: "clef-flash", ...request() }), 401,
                             "key");
});

await check("list, show, ps, version", async () => {
  const { models } = await client.list();
  require(models.length > 0 && models.every((model) => model.name), JSON.stringify(models));
  for (const model of models) {
    const { capabilities } = await client.show({ model: model.name });
    require(capabilities?.includes("decision"), `capabilities ${JSON.stringify(capabilities)}`);
  }
  const running = await client.ps();
  requireEqual(running.models.map((m) => m.name), models.map((m) => m.name), "ps");
  // Programs ask for 0.35.1 before they try a decision.
  const [major, minor] = (await client.version()).version.split(".").map(Number);
  require(major > 0 || minor >= 36, `version ${major}.${minor}`);
});

done();
