// What the client scripts share: the request, the expected answers, named checks.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";

export const SERVER = process.env.CLIENTS_URL;
export const KEYED_SERVER = process.env.CLIENTS_KEYED_URL;
export const KEY = process.env.CLIENTS_KEY;

export const STATE =
  "My card was charged twice this month. Please refund one of them today – Zoë.";
export const QUESTIONS = {
  refund: { type: "noul", instructions: "Does the customer want money back?" },
  // In no sorted order: answers keep the request's.
  team: {
    type: "choice",
    instructions: "Which team should handle this?",
    criteria: { technical: "Bugs, outages", billing: "Payments, invoices, refunds", sales: null },
  },
  urgency: {
    type: "score",
    instructions: "How urgent is it?",
    criteria: ["Can wait", "This week", "Today"],
  },
};
// More options than any protocol allows: the deliberate mistake, and what our message says of it.
export const TOO_MANY_OPTIONS = Object.fromEntries(
  Array.from({ length: 256 }, (_, i) => [`option ${i}`, null]),
);
export const MISTAKE = "256";

export const PICTURE_BYTES = readFileSync(path.join(process.env.CLIENTS_MEDIA, "scene.jpg"));
export const PICTURE_BASE64 = PICTURE_BYTES.toString("base64");
export const PICTURE_URL = `data:image/jpeg;base64,${PICTURE_BASE64}`;

// The server may cut a prompt into other chunks than `ask` does: sums in another order.
const TOLERANCE = 1e-6;

// What `clefkit ask` answers on the same model, without a server.
export function ask(request, confidence = "typesafe") {
  const output = execFileSync(
    process.env.CLEFKIT,
    ["ask", "-m", process.env.CLIENTS_MODEL, "--json", "--quiet", "--confidence", confidence,
     "--request", "-"],
    { input: JSON.stringify(request), timeout: 120_000, maxBuffer: 1 << 26 },
  );
  return JSON.parse(output);
}

export const request = (more = {}) => ({ state: STATE, questions: QUESTIONS, ...more });

export function require(condition, message) {
  if (!condition) throw new Mismatch(message);
}

class Mismatch extends Error {}

const shown = (value) => JSON.stringify(value)?.slice(0, 400);

export function requireEqual(found, expected, where) {
  require(JSON.stringify(found) === JSON.stringify(expected),
          `${where}: ${shown(found)}, expected ${shown(expected)}`);
}

export function requireClose(found, expected, where, decimals) {
  require(typeof found === "number" && Number.isFinite(found),
          `${where}: ${shown(found)}, expected a finite number`);
  if (decimals !== undefined) {
    require(Number(found.toFixed(decimals)) === found,
            `${where}: ${found}, expected ${decimals} decimals`);
  }
  const bound = decimals === undefined ? TOLERANCE : 0.5 * 10 ** -decimals + TOLERANCE;
  require(Math.abs(found - expected) <= bound, `${where}: ${found}, expected ${expected}`);
}

// Both are the `answers` of a System One response; numbers by value, the rest exactly.
// `without` are members that a protocol does not have.
export function requireAnswers(found, expected, { decimals, without = [] } = {}) {
  requireEqual(Object.keys(found), Object.keys(expected), "ids of the answers");
  for (const [question, right] of Object.entries(expected)) {
    const answer = found[question];
    requireEqual(Object.keys(answer).filter((m) => !m.startsWith("x_")).sort(),
                 Object.keys(right).filter((m) => !without.includes(m)).sort(),
                 `${question}: members`);
    for (const [member, value] of Object.entries(right)) {
      const where = `${question}.${member}`;
      if (without.includes(member)) continue;
      if (member === "probabilities") {
        requireEqual(Object.keys(answer[member]), Object.keys(value), `${where}: options in order`);
        for (const [option, probability] of Object.entries(value)) {
          requireClose(answer[member][option], probability, `${where}.${option}`, decimals);
        }
      } else if (typeof value === "number") {
        requireClose(answer[member], value, where, decimals);
      } else {
        requireEqual(answer[member], value, where);
      }
    }
  }
}

// An error of exactly this class is raised, and says all of `texts`.
export async function requireRaises(call, expected, ...texts) {
  let error;
  try {
    await call();
  } catch (raised) {
    error = raised;
  }
  require(error !== undefined, `no error, expected ${expected.name}`);
  // Packages that bundle a copy of an error's class tell it by a mark.
  require(error.constructor === expected || expected.isInstance?.(error),
          `${error.constructor.name}: ${error.message}, expected ${expected.name}`);
  for (const text of texts) {
    require(error.message.includes(text),
            `${expected.name} says ${shown(error.message)}, expected ${shown(text)}`);
  }
  return error;
}

let failed = false;

export async function check(name, body) {
  try {
    await body();
    console.log(`ok ${name}`);
  } catch (error) {
    // Whatever a client throws is a finding.
    const kind = error instanceof Mismatch ? "" : `${error?.constructor?.name}: `;
    const cause = error?.cause?.message ? ` (${error.cause.message})` : "";
    const text = `${kind}${error?.message}${cause}`.replaceAll("\n", " ").slice(0, 1500);
    console.log(`FAILED ${name}: ${text}`);
    failed = true;
  }
}

export function done() {
  console.log("done");
  process.exitCode = failed ? 1 : 0;
}
