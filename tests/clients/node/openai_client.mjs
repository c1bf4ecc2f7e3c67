// openai: Decisions at /v1/decisions.
import OpenAI from "openai";
import {
  ask, check, done, KEY, KEYED_SERVER, MISTAKE, PICTURE_URL, QUESTIONS, request, require,
  requireAnswers, requireEqual, requireRaises, STATE, TOO_MANY_OPTIONS, SERVER,
} from "./harness.mjs";

const client = new OpenAI({ apiKey: "unused", baseURL: `${SERVER}/v1` });
const asked = [
  { type: "predicate", name: "refund", instructions: QUESTIONS.refund.instructions },
  {
    type: "choice", name: "team", instructions: QUESTIONS.team.instructions,
    choices: [{ value: "technical", description: "Bugs, outages" },
              { value: "billing", description: "Payments, invoices, refunds" },
              { value: "sales" }],
  },
  {
    type: "score", name: "urgency", instructions: QUESTIONS.urgency.instructions,
    levels: QUESTIONS.urgency.criteria.map((label) => ({ label })),
  },
];

// An answer of this protocol in the words of the other.
function systemOne(answer) {
  const { type, choice, score, confidence } = answer;
  if (type === "predicate") return { type: "noul", noul: answer.probability };
  const column = (name) =>
    Object.fromEntries(answer.probabilities.map((entry) => [entry.value, entry[name]]));
  const probabilities = column("probability");
  if (type === "choice") return { type, choice, confidence, probabilities };
  return { type, score, confidence, legend: column("label"), probabilities };
}

function requireDecision(decision, expected, ids = Object.keys(QUESTIONS)) {
  requireEqual(decision.answers.length, ids.length, "answers");
  requireAnswers(Object.fromEntries(decision.answers.map((a, i) => [ids[i], systemOne(a)])),
                 expected.answers);
  const { usage } = decision;
  requireEqual(usage.input_tokens, expected.usage.input_tokens, "input_tokens");
  requireEqual(usage.total_tokens, usage.input_tokens + usage.output_tokens, "total_tokens");
  const cached = usage.input_tokens_details.cached_tokens;
  require(cached >= 0 && cached <= usage.input_tokens, `cached_tokens ${cached}`);
}

const create = (input, questions = asked) =>
  client.decisions.create({ model: "clef-flash", input, questions });

await check("text", async () => {
  const decision = await create(STATE);
  requireEqual(decision.answers.map((a) => a.name), ["refund", "team", "urgency"], "names");
  requireDecision(decision, ask(request()));
});

await check("address from the environment", async () => {
  Object.assign(process.env, { OPENAI_BASE_URL: `${SERVER}/v1`, OPENAI_API_KEY: "x" });
  const decision = await new OpenAI().decisions.create(
    { model: "clef-flash", input: STATE, questions: asked });
  requireDecision(decision, ask(request()));
});

await check("picture", async () => {
  const content = [{ type: "input_text", text: STATE },
                   { type: "input_image", image_url: PICTURE_URL, detail: "auto" }];
  requireDecision(await create([{ role: "user", content }]),
                  ask(request({ images: [PICTURE_URL] })));
});

await check("questions without names", async () => {
  const decision = await create(STATE, asked.map(({ name, ...question }) => question));
  requireEqual(decision.answers.map((a) => a.name), [null, null, null], "names");
  const ids = ["q1", "q2", "q3"];
  const questions = Object.fromEntries(Object.values(QUESTIONS).map((q, i) => [ids[i], q]));
  requireDecision(decision, ask({ state: STATE, questions }), ids);
});

await check("cache options", async () => {
  const decision = await client.decisions.create({
    model: "clef-flash", questions: asked, prompt_cache_key: "k", safety_identifier: "s",
    prompt_cache_options: { mode: "explicit", ttl: "30m" },
    input: [{ role: "user",
              content: [{ type: "input_text", text: STATE,
                          prompt_cache_breakpoint: { mode: "explicit" } }] }],
  });
  requireDecision(decision, ask(request()));
});

await check("mistake", async () => {
  const choices = Object.keys(TOO_MANY_OPTIONS).map((value) => ({ value }));
  const error = await requireRaises(() => create(STATE, [asked[0], { ...asked[1], choices }]),
                                    OpenAI.BadRequestError, MISTAKE);
  requireEqual(error.type, "invalid_request_error", "type");
  require(error.param?.startsWith("questions[1]"), `param ${error.param}`);
  require(error.requestID, "no x-request-id");
});

await check("key", async () => {
  const right = new OpenAI({ apiKey: KEY, baseURL: `${KEYED_SERVER}/v1` });
  requireDecision(
    await right.decisions.create({ model: "clef-flash", input: STATE, questions: asked }),
    ask(request()));
  const wrong = new OpenAI({ apiKey: "wrong", baseURL: `${KEYED_SERVER}/v1` });
  await requireRaises(
    () => wrong.decisions.create({ model: "clef-flash", input: STATE, questions: asked }),
    OpenAI.AuthenticationError, "key");
});

await check("models.list", async () => {
  const { data } = await client.models.list();
  require(data.length > 0, "no models");
  for (const model of data) {
    requireEqual(model.object, "model", "object");
    require(Number.isInteger(model.created) && model.owned_by, JSON.stringify(model));
  }
});

done();
