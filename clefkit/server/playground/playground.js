// The playground: builds one System One request, asks it, shows the answer. It talks to the server
// it came from and to nothing else, and keeps nothing but the key, for as long as the tab is open.

const MODEL = "clef-flash";
const MAX_FILE_BYTES = 64 * 2 ** 20; // The server's default; see docs/media.md.
const SERVER = new URL(".", location.href).href.replace(/\/$/, "");
const KEY_VARIABLE = "TYPESAFE_API_KEY"; // What the SDKs read.

const TYPES = { noul: "Yes or no", choice: "Choice", score: "Score" };

const byId = (id) => document.getElementById(id);

// What the page asks. A question keeps the fields of every type, so that a changed mind loses none.
const form = {
  stateKind: "text",
  state:
    "Since this morning's update the export button does nothing. Our month-end report is due at " +
    "five today, and we have tried two browsers. Please help!\n\nDana, Northwind",
  media: [], // {kind: "images" or "videos", name, size, url: data URL, preview: blob URL}
  questions: [
    question("noul", { id: "urgent", instructions: "Does the sender need help today?" }),
    question("choice", {
      id: "team",
      instructions: "Which team should answer?",
      options: [
        { name: "billing", description: "Invoices, payments and refunds" },
        { name: "technical", description: "Something does not work" },
        { name: "sales", description: "Plans, prices and new contracts" },
      ],
    }),
    question("score", {
      id: "severity",
      instructions: "How much is the sender's work held up?",
      levels: ["Not at all", "A little", "Some work has to wait", "Work stands still"],
    }),
  ],
};

function question(type, fields = {}) {
  const options = [{ name: "", description: "" }, { name: "", description: "" }];
  return { id: "", type, instructions: "", yes: "", no: "", options, levels: ["", ""], ...fields };
}

// A fault of the request or of the server, told in one sentence. `at` names the control to mend.
class Problem extends Error {
  constructor(sentence, at) {
    super(sentence);
    this.at = at;
  }
}

// ---- JSON. Objects are Maps and numbers stay as they were written: JavaScript's own objects move
// keys such as "10" to the front and its numbers lose digits, and the model reads both.

class Verbatim {
  constructor(text) {
    this.text = text;
  }
}

function readJson(text) {
  JSON.parse(text); // Throws unless it is JSON, so that what follows need not check.
  const tokens = text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{}]|[^\s[\]{}:,"]+/g);
  const next = () => tokens.next().value[0];
  const read = (token, depth) => {
    if (depth > 500) throw new SyntaxError("it is nested more than 500 deep");
    if (token === "[") {
      const list = [];
      for (let item = next(); item !== "]"; item = next()) list.push(read(item, depth + 1));
      return list;
    }
    if (token === "{") {
      const map = new Map();
      for (let key = next(); key !== "}"; key = next()) {
        map.set(JSON.parse(key), read(next(), depth + 1));
      }
      return map;
    }
    return /^[-\d]/.test(token) ? new Verbatim(token) : JSON.parse(token);
  };
  return read(next(), 0);
}

// JSON's string literals are Python's and TypeScript's too.
const LANGUAGES = {
  json: { step: "  ", true: "true", false: "false", null: "null", key: JSON.stringify },
  python: { step: "    ", true: "True", false: "False", null: "None", key: JSON.stringify },
  typescript: {
    ...{ step: "  ", true: "true", false: "false", null: "null" },
    // As a plain key it would set the object's prototype.
    key: (key) => (key === "__proto__" ? '["__proto__"]' : JSON.stringify(key)),
  },
};

function print(value, language, indent = "") {
  if (typeof value === "string") return JSON.stringify(value);
  if (value instanceof Verbatim) return value.text;
  if (value === null || typeof value === "boolean") return language[value];
  const inner = indent + language.step;
  const isList = Array.isArray(value);
  const parts = isList
    ? value.map((item) => print(item, language, inner))
    : Array.from(value, ([key, item]) => `${language.key(key)}: ${print(item, language, inner)}`);
  const [open, close] = isList ? "[]" : "{}";
  const line = open + parts.join(", ") + close;
  if (indent.length + line.length <= 80 && !line.includes("\n")) return line;
  return `${open}\n${parts.map((part) => inner + part).join(",\n")}\n${indent}${close}`;
}

// ---- The form as a request.

function stateTree() {
  if (form.stateKind === "text") return form.state;
  try {
    return readJson(form.state);
  } catch (error) {
    throw new Problem(`The state is not JSON: ${error.message}.`, "state");
  }
}

function criteriaTree({ type, yes, no, options, levels }, at, title) {
  if (type === "noul") {
    return new Map([["true", yes], ["false", no]].filter(([, text]) => text !== ""));
  }
  if (type === "score") {
    const empty = levels.indexOf("");
    if (empty < 0) return levels;
    throw new Problem(`Level ${empty} of ${title} is empty.`, `${at}.levels.${empty}`);
  }
  const criteria = new Map();
  options.forEach(({ name, description }, index) => {
    const place = `${at}.options.${index}`;
    if (name === "") throw new Problem(`Option ${index + 1} of ${title} has no name.`, place);
    if (criteria.has(name)) throw new Problem(`${title} has two options “${name}”.`, place);
    criteria.set(name, description === "" ? null : description);
  });
  return criteria;
}

// Throws Problem for what is missing. `urlOf` says how an entry of form.media is written.
function requestTree(urlOf = (item) => item.url) {
  const state = stateTree();
  if (form.questions.length === 0) throw new Problem("Add a question first.", "questions.add");
  const questions = new Map();
  form.questions.forEach((asked, index) => {
    const at = `questions.${index}`;
    const title = `Question ${index + 1}`;
    if (asked.id === "") throw new Problem(`${title} has no id.`, `${at}.id`);
    if (questions.has(asked.id)) {
      throw new Problem(`Two questions have the id “${asked.id}”.`, `${at}.id`);
    }
    const tree = new Map([["type", asked.type]]);
    if (asked.instructions !== "") tree.set("instructions", asked.instructions);
    const criteria = criteriaTree(asked, at, title);
    if (criteria.size !== 0) tree.set("criteria", criteria);
    questions.set(asked.id, tree);
  });
  const request = new Map([["model", MODEL], ["state", state], ["questions", questions]]);
  for (const kind of ["images", "videos"]) {
    const urls = form.media.filter((item) => item.kind === kind).map(urlOf);
    if (urls.length > 0) request.set(kind, urls);
  }
  return request;
}

// ---- The same request in other languages.

const shellQuoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

const hasKey = () => byId("key").value.trim() !== "";

// The SDK sends pictures and clips, but its types know neither; they do not look into a spread.
function typescriptRequest(request) {
  const members = Array.from(request);
  const known = print(new Map(members.slice(0, 3)), LANGUAGES.typescript);
  if (members.length === 3) return known;
  const media = print(new Map(members.slice(3)), LANGUAGES.typescript, "  ");
  return `${known.slice(0, -1).trimEnd()},\n  ...${media}\n}`;
}

const SNIPPETS = {
  // A here-document has no quoting to get wrong and no limit of length, as an argument has. A line
  // of JSON is never just the word JSON, so it ends where it should.
  curl: (request) => `curl -sS ${shellQuoted(`${SERVER}/v1/systemone`)} \\
  -H 'Content-Type: application/json' \\
${hasKey() ? `  -H "Authorization: Bearer $${KEY_VARIABLE}" \\\n` : ""}\
  --data-binary @- <<'JSON'
${print(request, LANGUAGES.json)}
JSON
`,
  python: (request) => `import json
${hasKey() ? "import os\n" : ""}import urllib.request

request = urllib.request.Request(
    ${JSON.stringify(`${SERVER}/v1/systemone`)},
    headers={
        "Content-Type": "application/json",
${hasKey() ? `        "Authorization": "Bearer " + os.environ["${KEY_VARIABLE}"],\n` : ""}\
    },
    data=json.dumps(${print(request, LANGUAGES.python, "    ")}).encode(),
)
with urllib.request.urlopen(request) as response:
    print(json.dumps(json.load(response)["answers"], indent=2, ensure_ascii=False))
`,
  typescript: (request) => `import { TypeSafeClient } from "@typesafe-ai/sdk";

const client = new TypeSafeClient({
  baseURL: ${JSON.stringify(SERVER)},
  apiKey: ${hasKey() ? `process.env.${KEY_VARIABLE}` : '"none"'},
  timeout: 120_000,
});
const response = await client.systemOne(${typescriptRequest(request)});
console.log(response.answers);
`,
};

function snippet(urlOf) {
  const language = document.querySelector('[name="language"]:checked').value;
  return SNIPPETS[language](requestTree(urlOf));
}

function showSnippet() {
  const shortened = ({ url }) => (url.length <= 100 ? url : `${url.slice(0, 60)}…`);
  try {
    byId("code").textContent = snippet(shortened);
    byId("copy").disabled = false;
  } catch (problem) {
    byId("code").textContent = problem.message;
    byId("copy").disabled = true;
  }
  const note = "Files are shown shortened and copied whole.";
  byId("code-note").textContent = form.media.length > 0 ? note : "";
  byId("copied").textContent = "";
}

async function copySnippet() {
  const text = snippet();
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Browsers have no clipboard for pages that came by plain HTTP from another machine.
    const helper = element("textarea", { value: text, className: "hidden" });
    byId("copy").after(helper);
    helper.select();
    const copied = document.execCommand("copy");
    helper.remove();
    byId("copy").focus();
    if (!copied) return complain(new Problem("This browser did not let the page copy."));
  }
  byId("copied").textContent = "Copied.";
}

// ---- Making elements.

function element(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

// A control that shows and changes object[property]. `at` is its name in Problem.at.
function bound(tag, object, property, at, properties = {}) {
  const usual = { autocomplete: "off", spellcheck: tag === "textarea" };
  const control = element(tag, { ...usual, ...properties });
  control.value = object[property];
  control.dataset.at = at;
  control.addEventListener("input", () => (object[property] = control.value));
  return control;
}

const labelled = (text, control) =>
  element("label", { className: "field" }, element("span", { textContent: text }), control);

function button(text, label, at, action, properties = {}) {
  const usual = { type: "button", textContent: text, onclick: action };
  const node = element("button", { ...usual, ...properties });
  if (label !== "") node.ariaLabel = label;
  node.dataset.at = at;
  return node;
}

function focusAt(at) {
  const control = document.querySelector(`[data-at="${at}"]`);
  const instead = control?.disabled && control.parentElement.querySelector("button:enabled");
  (instead || control)?.focus();
}

// ---- The question builder.

// Up, down and remove for list[index]; `at` names the list, `noun` one of its entries.
function entryButtons(list, index, at, noun, fewest = 0) {
  const move = (step) => () => {
    [list[index], list[index + step]] = [list[index + step], list[index]];
    showQuestions(`${at}.${index + step}.${step < 0 ? "up" : "down"}`);
    say(`${noun} moved ${step < 0 ? "up" : "down"}.`);
  };
  const remove = () => {
    list.splice(index, 1);
    const next = Math.min(index, list.length - 1);
    showQuestions(next < 0 ? `${at}.add` : `${at}.${next}.remove`);
    say(`${noun} removed.`);
  };
  const what = noun.toLowerCase();
  const icon = (text, title, name, action, disabled) =>
    button(text, title, `${at}.${index}.${name}`, action, { className: "icon", title, disabled });
  return element("div", { className: "row" },
    icon("↑", `Move ${what} up`, "up", move(-1), index === 0),
    icon("↓", `Move ${what} down`, "down", move(1), index === list.length - 1),
    icon("✕", `Remove ${what}`, "remove", remove, list.length <= fewest));
}

function entryList(list, at, noun, className, cells, blank) {
  const items = list.map((entry, index) =>
    element("li", { className }, ...cells(entry, index, `${at}.${index}`),
      entryButtons(list, index, at, `${noun} ${className === "level" ? index : index + 1}`, 2)));
  const add = () => {
    list.push(blank());
    showQuestions(`${at}.${list.length - 1}`);
  };
  return [
    element("ul", { className: "items" }, ...items),
    element("div", {}, button(`+ ${noun}`, "", `${at}.add`, add)),
  ];
}

function criteriaFields(asked, at) {
  if (asked.type === "noul") {
    return [element("div", { className: "two" },
      labelled("Yes means (optional)", bound("input", asked, "yes", `${at}.yes`)),
      labelled("No means (optional)", bound("input", asked, "no", `${at}.no`)))];
  }
  if (asked.type === "choice") {
    const cells = (option, index, place) => [
      bound("input", option, "name", place, {
        ariaLabel: `Option ${index + 1}`,
        placeholder: "Option",
      }),
      bound("input", option, "description", `${place}.description`, {
        className: "description",
        ariaLabel: `Description of option ${index + 1}, optional`,
        placeholder: "Description (optional)",
      }),
    ];
    return entryList(asked.options, `${at}.options`, "Option", "option", cells,
      () => ({ name: "", description: "" }));
  }
  const cells = (level, index, place) => [
    element("span", { className: "muted", textContent: index, ariaHidden: "true" }),
    bound("input", asked.levels, index, place, {
      ariaLabel: `Level ${index}`,
      placeholder: "What this level means",
    }),
  ];
  return entryList(asked.levels, `${at}.levels`, "Level", "level", cells, () => "");
}

function questionItem(asked, index) {
  const at = `questions.${index}`;
  const type = element("select");
  type.append(...Object.entries(TYPES).map(([value, text]) => new Option(text, value)));
  type.value = asked.type;
  type.dataset.at = `${at}.type`;
  type.addEventListener("change", () => {
    asked.type = type.value;
    showQuestions(`${at}.type`);
  });
  const title = `Question ${index + 1}`;
  const group = element("div", { className: "question", role: "group", ariaLabel: title },
    element("div", { className: "title-row" },
      element("h3", { textContent: title }),
      entryButtons(form.questions, index, "questions", title)),
    element("div", { className: "two" },
      labelled("Id", bound("input", asked, "id", `${at}.id`)),
      labelled("Type", type)),
    labelled("Instructions",
      bound("textarea", asked, "instructions", `${at}.instructions`, { rows: 2 })),
    ...criteriaFields(asked, at));
  return element("li", {}, group);
}

// Draws the questions anew, after a change of their structure, and puts the focus at `at`.
function showQuestions(at) {
  byId("questions").replaceChildren(...form.questions.map(questionItem));
  if (at) focusAt(at);
  showSnippet();
}

function addQuestion(type) {
  const used = new Set(form.questions.map((asked) => asked.id));
  let number = form.questions.length + 1;
  while (used.has(`question_${number}`)) ++number;
  form.questions.push(question(type, { id: `question_${number}` }));
  showQuestions(`questions.${form.questions.length - 1}.instructions`);
}

// ---- Pictures and clips.

function kindOf(file) {
  if (file.type.startsWith("image/")) return "images";
  if (file.type.startsWith("video/")) return "videos";
  if (/\.(mkv|mov|webm|mp4|m4v)$/i.test(file.name)) return "videos"; // Not every system knows these.
  throw new Problem(`“${file.name}” is neither a picture nor a clip.`);
}

function dataUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(new Problem(`“${file.name}” cannot be read.`));
    reader.readAsDataURL(file);
  });
}

async function addFiles(files) {
  complain(null);
  try {
    for (const file of files) {
      const { name, size } = file;
      const kind = kindOf(file);
      if (size > MAX_FILE_BYTES) throw new Problem(`“${name}” is larger than 64 MiB.`);
      const url = await dataUrl(file);
      form.media.push({ kind, name, size, url, preview: URL.createObjectURL(file) });
      say(`${name} added.`);
    }
  } catch (problem) {
    complain(problem);
  }
  showMedia();
}

function mediaItem(item, index) {
  const isImage = item.kind === "images";
  const source = { src: item.preview };
  const preview = isImage
    ? element("img", { ...source, alt: "" })
    : element("video", { ...source, muted: true, controls: true, ariaLabel: item.name });
  const frame = element("div", { className: "preview note" }, preview);
  preview.onerror = () => frame.replaceChildren("No preview");
  const remove = () => {
    URL.revokeObjectURL(item.preview);
    form.media.splice(index, 1);
    showMedia();
    byId("files").focus();
    say(`${item.name} removed.`);
  };
  const kilobytes = Math.ceil(item.size / 1000);
  const size = kilobytes < 1000 ? `${kilobytes} kB` : `${(kilobytes / 1000).toFixed(1)} MB`;
  return element("li", {}, frame,
    element("span", { className: "note", textContent: `${item.name}, ${size}` }),
    button("Remove", `Remove ${isImage ? "picture" : "clip"} ${item.name}`, `media.${index}`, remove));
}

function showMedia() {
  byId("media").replaceChildren(...form.media.map(mediaItem));
  showSnippet();
}

// ---- What is said to the person: one sentence of success, or one of failure.

function say(sentence) {
  byId("status").textContent = sentence;
}

function complain(problem) {
  document.querySelector('#questions [aria-invalid="true"]')?.removeAttribute("aria-invalid");
  byId("error").textContent = problem?.message ?? "";
  if (!problem) return;
  say("");
  if (!problem.at) return;
  focusAt(problem.at);
  const control = document.activeElement;
  if (control.matches("input, textarea")) control.ariaInvalid = "true";
}

function checkState() {
  const state = byId("state");
  const isJson = form.stateKind === "json";
  let note = isJson ? "This is JSON." : "";
  state.ariaInvalid = "false";
  if (isJson && form.state.trim() === "") {
    note = "Write any JSON value, for example {\"ticket\": \"…\"}.";
  } else if (isJson) {
    try {
      readJson(form.state);
    } catch (error) {
      note = `Not JSON: ${error.message}`;
      state.ariaInvalid = "true";
    }
  }
  if (byId("state-note").textContent !== note) byId("state-note").textContent = note;
}

// ---- Asking.

let running = null; // The AbortController of the request on its way.

function headers() {
  const key = byId("key").value.trim();
  if (/[^\x21-\x7e]/.test(key)) throw new Problem("A key has only ASCII letters, digits and signs.");
  const always = { "Content-Type": "application/json" };
  return key === "" ? always : { ...always, Authorization: `Bearer ${key}` };
}

async function refusal(response) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    // Not ours, for example a proxy's page.
  }
  const text = body?.error?.message ?? body?.error ?? body?.detail?.message ?? body?.detail;
  const otherwise = `The server answered with status ${response.status}.`;
  const seconds = response.headers.get("Retry-After");
  const hint = seconds === null ? "" : ` (Try again in ${seconds} s.)`;
  return new Problem((typeof text === "string" ? text : otherwise) + hint);
}

async function send(request) {
  const body = print(request, LANGUAGES.json);
  const { signal } = running;
  const options = { method: "POST", headers: headers(), body, signal };
  const response = await fetch(`${SERVER}/v1/systemone`, options).catch((error) => {
    throw signal.aborted ? error : new Problem("The server cannot be reached.");
  });
  if (response.status === 401) {
    byId("access").open = true;
    byId("key").focus();
    throw new Problem(hasKey() ? "The server does not know this key." : "This server wants a key.");
  }
  if (!response.ok) throw await refusal(response);
  return response.json();
}

function setBusy(isBusy) {
  byId("ask").ariaDisabled = String(isBusy);
  byId("answers").ariaBusy = String(isBusy);
  if (!isBusy && document.activeElement === byId("cancel")) byId("ask").focus();
  byId("cancel").disabled = !isBusy;
}

async function ask() {
  if (running !== null) return;
  complain(null);
  running = new AbortController();
  const started = performance.now();
  const elapsed = () => (performance.now() - started) / 1000;
  const tick = () => (byId("elapsed").textContent = `${elapsed().toFixed(0)} s`);
  const clock = setInterval(tick, 1000);
  try {
    const asked = structuredClone(form.questions); // The form may change until the answer comes.
    const request = requestTree();
    setBusy(true);
    say("Asking…");
    const answer = await send(request);
    showAnswer(asked, answer, elapsed());
    say(`Answered in ${duration(elapsed())}.`);
  } catch (error) {
    if (error.name === "AbortError") say("Cancelled.");
    else complain(error);
  } finally {
    clearInterval(clock);
    byId("elapsed").textContent = "";
    running = null;
    setBusy(false);
  }
}

async function showModel() {
  try {
    const response = await fetch(`${SERVER}/v1/models`, { headers: headers() });
    if (response.status === 401) byId("access").open = true;
    if (response.ok) byId("model").textContent = (await response.json()).models[0].name;
  } catch {
    // The name is a courtesy; asking will say what is wrong.
  }
}

// ---- The answer.

function duration(seconds) {
  if (seconds >= 1) return `${seconds.toFixed(2)} s`;
  return `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
}

const lastShares = new Map(); // Where each bar stood, so that it moves from there.

function shareRow(text, share, isChosen, barKey) {
  const bar = element("div", { className: "bar" });
  bar.style.width = `${(lastShares.get(barKey) ?? 0) * 100}%`;
  bar.dataset.share = share;
  lastShares.set(barKey, share);
  const name = element("span", {}, isChosen ? "✓ " : "", text);
  if (isChosen) name.append(element("span", { className: "hidden", textContent: " (chosen)" }));
  return element("li", { className: isChosen ? "chosen" : "" }, name,
    element("span", { className: "share", textContent: `${(share * 100).toFixed(1)} %` }),
    element("div", { className: "track", ariaHidden: "true" }, bar));
}

// What was answered, in words, and the rows of bars: [text, share, whether it is the answer].
function reading(asked, answer) {
  if (asked.type === "noul") {
    const yes = answer.noul;
    const isYes = yes >= 0.5;
    return { verdict: isYes ? "yes" : "no", rows: [["yes", yes, isYes], ["no", 1 - yes, !isYes]] };
  }
  const shareOf = (option) => answer.probabilities[option];
  if (asked.type === "choice") {
    const rows = asked.options.map(({ name }) => [name, shareOf(name), name === answer.choice]);
    return { verdict: answer.choice, rows };
  }
  const shares = asked.levels.map((_, level) => shareOf(String(level)));
  const top = shares.indexOf(Math.max(...shares));
  const rows = asked.levels.map((text, level) => [`${level} · ${text}`, shares[level], level === top]);
  return { verdict: `${answer.score.toFixed(2)} of ${asked.levels.length - 1}`, rows };
}

function answerArticle(asked, answer) {
  const { verdict, rows } = reading(asked, answer);
  const head = element("div", { className: "verdict" },
    element("h3", { textContent: asked.id }), element("strong", { textContent: verdict }));
  if (answer.confidence !== undefined) {
    const textContent = `confidence ${answer.confidence.toFixed(2)}`;
    head.append(element("span", { className: "note", textContent }));
  }
  const bars = rows.map(([text, share, isChosen], index) =>
    shareRow(text, share, isChosen, JSON.stringify([asked.id, asked.type, index, text])));
  return element("div", { className: "answer" }, head, element("ul", { className: "shares" }, ...bars));
}

function showFacts(answer, seconds) {
  const usage = answer.usage ?? {};
  const tokens = usage.input_tokens;
  const reused = usage.x_reused_tokens;
  const stages = Object.entries(answer.x_timing ?? {})
    .map(([name, value]) => `${name.replace(/_seconds$/, "")} ${duration(value)}`);
  const facts = [
    ["Time", duration(seconds)],
    ["Tokens", tokens],
    ["Reused", reused === undefined ? undefined : `${reused} of ${tokens}`],
    ["Dropped from the state", usage.x_dropped_state_tokens || undefined],
    ["Model", answer.model],
    ["Stages", stages.join(" · ") || undefined],
    ["Request", answer.x_request_id],
  ].filter(([, value]) => value !== undefined);
  byId("facts").replaceChildren(...facts.map(([name, value]) =>
    element("div", { className: name === "Stages" || name === "Request" ? "wide" : "" },
      element("dt", { textContent: name }), element("dd", { textContent: value }))));
}

function showAnswer(asked, answer, seconds) {
  const articles = asked.map((one) => {
    if (!answer.answers?.[one.id]) throw new Problem(`The server did not answer “${one.id}”.`);
    return answerArticle(one, answer.answers[one.id]);
  });
  byId("no-answers").hidden = true;
  byId("answers").replaceChildren(...articles);
  showFacts(answer, seconds);
  byId("answers").getBoundingClientRect(); // Lays the bars out as they were: they move from there.
  for (const bar of byId("answers").querySelectorAll(".bar")) {
    bar.style.width = `${bar.dataset.share * 100}%`;
  }
  // On a phone the answers are below the form.
  const title = byId("answers-title");
  const { top } = title.getBoundingClientRect();
  if (top > innerHeight * 0.7 || top < 0) {
    const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
    title.scrollIntoView({ behavior, block: "start" });
  }
}

// ---- Start.

let pause = null;

byId("request").addEventListener("input", (event) => {
  if (event.target.id === "files" || event.target.id === "key") return;
  if (event.target.id !== "state") event.target.removeAttribute("aria-invalid");
  clearTimeout(pause); // Big states take a moment to check, and screen readers to say it.
  pause = setTimeout(() => { checkState(); showSnippet(); }, 250);
});

byId("state").value = form.state;
byId("state").dataset.at = "state";
byId("state").addEventListener("input", () => (form.state = byId("state").value));
for (const radio of document.querySelectorAll('[name="state-kind"]')) {
  radio.addEventListener("change", () => {
    form.stateKind = radio.value;
    byId("state").classList.toggle("code", radio.value === "json");
    byId("state").spellcheck = radio.value === "text";
  });
}
for (const add of document.querySelectorAll("[data-add]")) {
  add.addEventListener("click", () => addQuestion(add.dataset.add));
}
for (const radio of document.querySelectorAll('[name="language"]')) {
  radio.addEventListener("change", showSnippet);
}

byId("files").addEventListener("change", async () => {
  await addFiles(Array.from(byId("files").files));
  byId("files").value = ""; // So that a removed file can be chosen again.
});
const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");
document.addEventListener("dragover", (event) => {
  if (!holdsFiles(event)) return;
  event.preventDefault();
  document.body.classList.add("dropping");
});
document.addEventListener("dragleave", (event) => {
  if (event.relatedTarget === null) document.body.classList.remove("dropping");
});
document.addEventListener("drop", (event) => {
  document.body.classList.remove("dropping");
  if (!holdsFiles(event)) return;
  event.preventDefault();
  addFiles(Array.from(event.dataTransfer.files));
});
document.addEventListener("paste", (event) => {
  // Office programs put a picture of copied text beside the text: the text is meant.
  const { files, types } = event.clipboardData;
  if (files.length === 0 || types.includes("text/plain")) return;
  event.preventDefault();
  addFiles(Array.from(files));
});

byId("ask").addEventListener("click", ask);
byId("cancel").addEventListener("click", () => running?.abort());
byId("copy").addEventListener("click", copySnippet);
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    ask();
  }
  if (event.key === "Escape") running?.abort();
});

const KEY_NAME = "clefkit.key";
try {
  byId("key").value = sessionStorage.getItem(KEY_NAME) ?? "";
  byId("key").addEventListener("change", () => sessionStorage.setItem(KEY_NAME, byId("key").value));
} catch {
  // Storage is switched off: the key lasts as long as the page.
}
byId("key").addEventListener("change", () => {
  showModel();
  showSnippet();
});
byId("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});

showQuestions();
checkState();
showModel();
