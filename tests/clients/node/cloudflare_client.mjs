// cloudflare: Workers AI at /client/v4/…; the model's slashes arrive percent-encoded.
import Cloudflare from "cloudflare";
import {
  ask, check, done, KEY, KEYED_SERVER, MISTAKE, PICTURE_BASE64, PICTURE_URL, QUESTIONS, request,
  require, requireAnswers, requireEqual, requireRaises, STATE, TOO_MANY_OPTIONS, SERVER,
} from "./harness.mjs";

const MODEL = "@cf/cloudflare/clef-flash";
const client = new Cloudflare({ apiToken: "unused", baseURL: `${SERVER}/client/v4` });
const run = (body, using = client, model = MODEL) =>
  using.ai.run(model, { account_id: "an-account", ...body });

function requireResult(result, expected) {
  requireAnswers(result.answers, expected.answers, { decimals: 4 });
  requireEqual(result.usage.input_tokens, expected.usage.input_tokens, "input_tokens");
  requireEqual(result.usage.output_tokens, 0, "output_tokens");
  require(result.model, "no model");
}

await check("text", async () => {
  requireResult(await run(request({ model: "clef-flash" })), ask(request(), "purity"));
});

await check("address from the environment", async () => {
  Object.assign(process.env,
                { CLOUDFLARE_BASE_URL: `${SERVER}/client/v4`, CLOUDFLARE_API_TOKEN: "x" });
  requireResult(await run(request(), new Cloudflare()), ask(request(), "purity"));
});

await check("the envelope", async () => {
  const response = await run(request()).asResponse();
  const { result, ...envelope } = await response.json();
  requireEqual(envelope, { success: true, errors: [], messages: [] }, "envelope");
  require(response.headers.get("cf-ray"), "no cf-ray");
});

await check("pictures, both encodings", async () => {
  const images = [PICTURE_URL, { content_type: "image/jpeg", base64: PICTURE_BASE64 }];
  requireResult(await run(request({ images })), ask(request({ images }), "purity"));
});

await check("mistake", async () => {
  const team = { ...QUESTIONS.team, criteria: TOO_MANY_OPTIONS };
  const error = await requireRaises(() => run({ state: STATE, questions: { team } }),
                                    Cloudflare.UnprocessableEntityError, "team", MISTAKE);
  requireEqual(error.errors.map((e) => e.code), [5012], "codes");
});

await check("key", async () => {
  const options = { baseURL: `${KEYED_SERVER}/client/v4` };
  const right = new Cloudflare({ apiToken: KEY, ...options });
  requireResult(await run(request(), right), ask(request(), "purity"));
  const wrong = new Cloudflare({ apiToken: "wrong", ...options });
  const error = await requireRaises(() => run(request(), wrong), Cloudflare.AuthenticationError);
  requireEqual(error.errors.map((e) => e.code), [10000], "codes");
});

await check("models", async () => {
  const { result } = await client.ai.models.list({ account_id: "an-account" });
  require(result.length > 0, "no models");
  for (const { name } of result) {
    requireResult(await run(request(), client, name), ask(request(), "purity"));
  }
  const schema = await client.ai.models.schema.get({ account_id: "an-account", model: MODEL });
  require(schema.input?.properties?.questions, JSON.stringify(schema).slice(0, 300));
});

done();
