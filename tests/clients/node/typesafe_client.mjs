// @typesafe-ai/sdk: System One at /v1/systemone.
import {
  AuthenticationError, choice, noul, score, TypeSafeClient, UnprocessableEntityError,
} from "@typesafe-ai/sdk";
import {
  ask, check, done, KEY, KEYED_SERVER, MISTAKE, PICTURE_BASE64, PICTURE_URL, QUESTIONS, request,
  require, requireAnswers, requireEqual, requireRaises, STATE, TOO_MANY_OPTIONS, SERVER,
} from "./harness.mjs";

const client = new TypeSafeClient({ apiKey: "unused", baseURL: SERVER, timeout: 60_000 });
const typed = {
  refund: noul(QUESTIONS.refund.instructions),
  team: choice(QUESTIONS.team.instructions, QUESTIONS.team.criteria),
  urgency: score(QUESTIONS.urgency.instructions, QUESTIONS.urgency.criteria),
};

function requireResponse(response, expected) {
  requireAnswers(response.answers, expected.answers);
  requireEqual(response.usage.input_tokens, expected.usage.input_tokens, "input_tokens");
  requireEqual(response.usage.output_tokens, 0, "output_tokens");
  require(response.model, "no model");
}

await check("text", async () => {
  const { data, requestId } =
    await client.systemOne({ state: STATE, questions: typed }).withResponse();
  requireResponse(data, ask(request()));
  require(requestId, "no x-typesafe-request-id");
});

await check("address from the environment", async () => {
  Object.assign(process.env, { TYPESAFE_BASE_URL: SERVER, TYPESAFE_API_KEY: "x" });
  requireResponse(await new TypeSafeClient().systemOne({ state: STATE, questions: typed }),
                  ask(request()));
});

await check("object as state", async () => {
  const state = { subject: "Charged twice", amounts: [12.5, 1e-7, 3], paid: true, 名前: null };
  requireResponse(await client.systemOne({ state, questions: typed }), ask(request({ state })));
});

await check("empty state, no instructions", async () => {
  const questions = { "질문 🎯": noul(null, { true: "It is empty" }) };
  requireResponse(await client.systemOne({ state: [], questions }), ask({ state: [], questions }));
});

for (const [name, image] of Object.entries({
  "data URL": PICTURE_URL,
  "base64": PICTURE_BASE64,
  "base64 with its type": { content_type: "image/jpeg", base64: PICTURE_BASE64 },
})) {
  await check(`picture: ${name}`, async () => {
    const response = await client.systemOne({ state: STATE, questions: typed, images: [image] });
    requireResponse(response, ask(request({ images: [PICTURE_URL] })));
  });
}

await check("model names", async () => {
  const expected = ask(request());
  for (const model of ["jev-latest", "jev-1.13.0", "clef", "clef-flash", "~typesafe/jev-latest"]) {
    requireResponse(await client.systemOne({ model, state: STATE, questions: typed }), expected);
  }
});

await check("mistake", async () => {
  const questions = { ...typed, team: choice(null, TOO_MANY_OPTIONS) };
  const error = await requireRaises(() => client.systemOne({ state: STATE, questions }),
                                    UnprocessableEntityError, "questions.team", MISTAKE);
  requireEqual(error.body.detail[0].loc.slice(0, 3), ["body", "questions", "team"], "loc");
  require(error.requestId, "no x-typesafe-request-id");
});

await check("key", async () => {
  const right = new TypeSafeClient({ apiKey: KEY, baseURL: KEYED_SERVER, timeout: 60_000 });
  requireResponse(await right.systemOne({ state: STATE, questions: typed }), ask(request()));
  const wrong = new TypeSafeClient({ apiKey: "wrong", baseURL: KEYED_SERVER });
  await requireRaises(() => wrong.systemOne({ state: STATE, questions: typed }),
                      AuthenticationError, "key");
  await requireRaises(() => wrong.models.list(), AuthenticationError, "key");
});

await check("models.list", async () => {
  const models = await client.models.list();
  require(models.length > 0, "no models");
  for (const model of models) {
    require(model.name && model.description && /^\d{4}-\d\d-\d\d$/.test(model.release_date),
            JSON.stringify(model));
  }
});

done();
