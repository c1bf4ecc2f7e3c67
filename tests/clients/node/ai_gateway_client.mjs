// ai with its built-in gateway: {base}/decision-model. It checks every distribution it gets.
import { createGateway, experimental_decide as decide } from "ai";
import {
  ask, check, done, KEY, KEYED_SERVER, MISTAKE, PICTURE_BYTES, PICTURE_URL, QUESTIONS, request,
  require, requireAnswers, requireEqual, STATE, TOO_MANY_OPTIONS, SERVER,
} from "./harness.mjs";

const gateway = createGateway({ apiKey: "unused", baseURL: `${SERVER}/v4/ai` });
const model = gateway.decisionModel("cloudflare/clef-flash");
const { refund, ...rest } = QUESTIONS;
const asked = { refund: { ...refund, type: "boolean" }, ...rest };
const call = (more) => decide({ model, state: STATE, questions: asked, maxRetries: 0, ...more });

function requireResult(result, expected) {
  const answers = Object.fromEntries(Object.entries(result.answers).map(
    ([id, answer]) => [id, answer.type === "boolean"
      ? { type: "noul", noul: answer.probability } : answer]));
  // Its schema of an answer has no others; whether we round is the server's to declare.
  const decimals = result.rounding?.probabilityDecimals;
  requireAnswers(answers, expected.answers, { decimals, without: ["confidence", "legend"] });
  requireEqual(result.usage.inputTokens, expected.usage.input_tokens, "inputTokens");
  require(result.response.modelId, "no model");
}

async function requireGatewayError(promise, name, status, ...texts) {
  let error;
  try {
    await promise;
  } catch (raised) {
    error = raised;
  }
  require(error?.name === name, `${error?.name}: ${error?.message}, expected ${name}`);
  requireEqual(error.statusCode, status, "status");
  for (const text of texts) require(error.message.includes(text), `${error.message}: no ${text}`);
}

await check("text", async () => {
  requireResult(await call(), ask(request()));
});

await check("object as state", async () => {
  const state = { subject: "Charged twice", amounts: [12.5, 3] };
  requireResult(await call({ state }), ask(request({ state })));
});

await check("picture", async () => {
  const state = [{ type: "text", text: STATE },
                 { type: "file", mediaType: "image/jpeg", data: PICTURE_BYTES }];
  requireResult(await call({ state }), ask(request({ images: [PICTURE_URL] })));
});

await check("boolean with criteria only", async () => {
  const criteria = { true: "They want money", false: null };
  const { answers } = await call({ questions: { q: { type: "boolean", criteria } } });
  const expected = ask({ state: STATE, questions: { q: { type: "noul", criteria } } });
  requireAnswers({ q: { type: "noul", noul: answers.q.probability } }, expected.answers);
});

await check("mistake", async () => {
  const team = { ...QUESTIONS.team, criteria: TOO_MANY_OPTIONS };
  await requireGatewayError(call({ questions: { team } }), "GatewayInvalidRequestError", 400,
                            "team", MISTAKE);
});

await check("key", async () => {
  const keyed = (apiKey) => createGateway({ apiKey, baseURL: `${KEYED_SERVER}/v4/ai` })
    .decisionModel("cloudflare/clef-flash");
  requireResult(await call({ model: keyed(KEY) }), ask(request()));
  await requireGatewayError(call({ model: keyed("wrong") }), "GatewayAuthenticationError", 401);
});

await check("getAvailableModels", async () => {
  const { models } = await gateway.getAvailableModels();
  require(models.length > 0 && models.every((m) => m.id && m.modelType === "decision"),
          JSON.stringify(models));
});

done();
