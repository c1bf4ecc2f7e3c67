// @openrouter/sdk: /api/v1/systemone and /api/alpha/decisions.
import { OpenRouter } from "@openrouter/sdk";
import * as errors from "@openrouter/sdk/models/errors";
import {
  ask, check, done, KEY, KEYED_SERVER, MISTAKE, PICTURE_URL, QUESTIONS, request, require,
  requireAnswers, requireEqual, requireRaises, STATE, TOO_MANY_OPTIONS, SERVER,
} from "./harness.mjs";

// The environment is read once, by the first client.
Object.assign(process.env, { OPENROUTER_BASE_URL: `${SERVER}/api/v1`, OPENROUTER_API_KEY: "x" });
// Its own retries of a 5xx go on for an hour.
const options = { retryConfig: { strategy: "none" }, timeoutMs: 60_000 };
const client = new OpenRouter({ apiKey: "unused", serverURL: `${SERVER}/api/v1`, ...options });
// The alpha route does not heed the client's address.
const alpha = { serverURL: SERVER };

function requireResponse(response, expected) {
  requireAnswers(response.answers, expected.answers);
  requireEqual(response.usage.inputTokens, expected.usage.input_tokens, "input_tokens");
  requireEqual(response.usage.cost, 0, "cost");
  require(response.id && response.model && response.provider,
          `id, model, provider: ${response.id}, ${response.model}, ${response.provider}`);
}

const body = (more = {}) => ({ model: "cloudflare/clef-flash", ...request(more) });

await check("systemOne.create", async () => {
  requireResponse(await client.systemOne.create({ decisionsRequest: body() }), ask(request()));
});

await check("alpha.decisions.create", async () => {
  requireResponse(await client.alpha.decisions.create({ decisionsRequest: body() }, alpha),
                  ask(request()));
});

await check("address from the environment", async () => {
  const exported = new OpenRouter(options);
  requireResponse(await exported.systemOne.create({ decisionsRequest: body() }), ask(request()));
});

await check("what goes along", async () => {
  const decisionsRequest = body({ provider: { allowFallbacks: false }, sessionId: "s", user: "u",
                                  trace: { traceId: "t" } });
  requireResponse(await client.systemOne.create({ decisionsRequest }), ask(request()));
});

await check("picture within the state", async () => {
  // The client drops an `images` member; parts of the state are the only way.
  const state = [{ type: "text", text: STATE },
                 { type: "image_url", image_url: { url: PICTURE_URL } }];
  const seen = await client.systemOne.create({ decisionsRequest: body({ state }) });
  const unseen = await client.systemOne.create({ decisionsRequest: body() });
  // How parts become a state is the server's own: the picture's tokens show that it was read.
  const pictureTokens = ask(request({ images: [PICTURE_URL] })).usage.input_tokens -
    ask(request()).usage.input_tokens;
  const more = seen.usage.inputTokens - unseen.usage.inputTokens;
  require(more >= pictureTokens && more < pictureTokens + 60,
          `${more} tokens more, of which the picture has ${pictureTokens}`);
});

await check("mistake", async () => {
  const decisionsRequest =
    body({ questions: { team: { ...QUESTIONS.team, criteria: TOO_MANY_OPTIONS } } });
  for (const call of [() => client.systemOne.create({ decisionsRequest }),
                      () => client.alpha.decisions.create({ decisionsRequest }, alpha)]) {
    const error = await requireRaises(call, errors.BadRequestResponseError, "team", MISTAKE);
    requireEqual(error.error.code, 400, "code");
  }
});

await check("key", async () => {
  const keyed = { serverURL: `${KEYED_SERVER}/api/v1`, ...options };
  const right = new OpenRouter({ apiKey: KEY, ...keyed });
  requireResponse(await right.systemOne.create({ decisionsRequest: body() }), ask(request()));
  const wrong = new OpenRouter({ apiKey: "wrong", ...keyed });
  const error = await requireRaises(() => wrong.systemOne.create({ decisionsRequest: body() }),
                                    errors.UnauthorizedResponseError, "key");
  requireEqual(error.error.code, 401, "code");
});

await check("models.list", async () => {
  const pages = await client.models.list();
  const models = [];
  for await (const page of pages) models.push(...page.result.data);
  require(models.length > 0, "no models");
  for (const model of models) {
    require(model.architecture.outputModalities.includes("decisions"),
            `outputs ${model.architecture.outputModalities}`);
  }
});

done();
