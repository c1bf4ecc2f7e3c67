// @openrouter/ai-sdk-provider under ai: /api/alpha/decisions, derived from /api/v1.
import { createOpenRouter } from "@openrouter/ai-sdk-provider";
import { APICallError, experimental_decide as decide } from "ai";
import {
  ask, check, done, KEY, KEYED_SERVER, MISTAKE, PICTURE_BYTES, PICTURE_URL, QUESTIONS, request,
  require, requireAnswers, requireEqual, requireRaises, STATE, TOO_MANY_OPTIONS, SERVER,
} from "./harness.mjs";

const modelOf = (url, apiKey) => createOpenRouter({ apiKey, baseURL: `${url}/api/v1` })
  .evaluationModel("cloudflare/clef-flash");
const model = modelOf(SERVER, "unused");
const { refund, ...rest } = QUESTIONS;
const asked = { refund: { ...refund, type: "boolean" }, ...rest };
const call = (more) => decide({ model, state: STATE, questions: asked, maxRetries: 0, ...more });

function requireResult(result, expected) {
  const extra = result.providerMetadata.openrouter.answers;
  const answers = Object.fromEntries(Object.entries(result.answers).map(
    ([id, answer]) => [id, answer.type === "boolean"
      ? { type: "noul", noul: answer.probability } : { ...answer, ...extra[id] }]));
  requireAnswers(answers, expected.answers);
  requireEqual(result.usage.inputTokens, expected.usage.input_tokens, "inputTokens");
  require(result.providerMetadata.openrouter.provider, "no provider");
}

await check("text", async () => {
  // It sends [{"type": "text", "text": …}] for a text.
  requireResult(await call(), ask(request()));
});

await check("object as state", async () => {
  const state = { subject: "Charged twice", amounts: [12.5, 3] };
  requireResult(await call({ state }), ask(request({ state })));
});

await check("picture, read or refused with a reason", async () => {
  // It sends the bytes as an object from "0", "1", … to numbers.
  const state = [{ type: "text", text: STATE },
                 { type: "file", mediaType: "image/jpeg", data: PICTURE_BYTES }];
  try {
    requireResult(await call({ state }), ask(request({ images: [PICTURE_URL] })));
  } catch (error) {
    if (!APICallError.isInstance(error)) throw error;
    require([400, 422].includes(error.statusCode), `status ${error.statusCode}`);
    require(/state\[1\]/.test(error.message), `${error.message}: does not name the part`);
  }
});

await check("mistake", async () => {
  const team = { ...QUESTIONS.team, criteria: TOO_MANY_OPTIONS };
  const error = await requireRaises(() => call({ questions: { team } }), APICallError, "team",
                                    MISTAKE);
  requireEqual(error.statusCode, 400, "status");
});

await check("key", async () => {
  requireResult(await call({ model: modelOf(KEYED_SERVER, KEY) }), ask(request()));
  const error = await requireRaises(() => call({ model: modelOf(KEYED_SERVER, "wrong") }),
                                    APICallError, "key");
  requireEqual(error.statusCode, 401, "status");
});

done();
