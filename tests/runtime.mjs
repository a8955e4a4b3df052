// Runs the runtime on what stands in a file, and prints what it says, as JSON.
//   node tests/runtime.mjs RUNTIME JOB
// A job holds a model file, rows that are answered, and scripts that sessions follow.
import { readFileSync, writeSync } from "node:fs";
import { createRequire } from "node:module";

const [, , runtime, path] = process.argv;
const { Policy, SensorTreeError } = createRequire(import.meta.url)(runtime);
const job = JSON.parse(readFileSync(path, "utf8"));
const policy = new Policy(job.model, job.fingerprint);

function tried(what) {
  try {
    return what();
  } catch (error) {
    if (error instanceof SensorTreeError) return { refused: error.message };
    throw error;
  }
}

function reasons(session, { node, score, share, proba, contributions, influences }) {
  const { change, bought } = session.explain().at(-1);
  const words = influences.map(({ words, contribution }) => [words, contribution]);
  return { node, score, share, proba, contributions, influences: words, change, bought };
}

function answered({ values, prices }) {
  const session = policy.follow(values, { prices });
  return { ...session.decision(), route: session.passed };
}

function followed({ given, events }) {
  const session = policy.session(given);
  const said = () => {
    const step = session.step();
    return {
      ...step,
      why: step.why && reasons(session, step.why),
      decision: session.ask() === null ? session.decision() : null,
    };
  };
  const steps = [said()];
  for (const [kind, ...told] of events) {
    const refused = tried(() => session[kind](...told));
    steps.push(refused ? { refused: true } : said());
  }
  return { steps, state: session.toDict() };
}

const out = JSON.stringify({
  rows: (job.rows || []).map(answered),
  sessions: (job.sessions || []).map((script) => tried(() => followed(script))),
});
for (let rest = Buffer.from(out); rest.length; ) rest = rest.subarray(writeSync(1, rest));
