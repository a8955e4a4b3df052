// A sensor tree that is asked one sensor at a time: the policy of a model file, in JavaScript.
//
//   const policy = new SensorTree.Policy(JSON.parse(text));
//   const session = policy.session();
//   for (let step; (step = session.ask()); ) session.tell(step.sensor, await buy(step));
//   session.decision();
//
// It walks as the Python library does (policy/walk.py, policy/session.py): the same places,
// the same sums in the same order where that can be, so that route, answer and cost are the
// same. Missing is null or NaN. Nothing leaves the page and nothing is fetched.
(function (root, factory) {
  "use strict";
  if (typeof module === "object" && module.exports) module.exports = factory();
  else root.SensorTree = factory();
})(typeof self !== "undefined" ? self : this, function () {
  "use strict";

  const FORMAT_VERSION = 2;
  const LARGEST = 1e70; // a larger reading is as good as an infinity
  const ROUNDING = 1e-12;
  const TINY = 2.2250738585072014e-308;
  const LEAST_IN_LEAF = 1e-6; // the least probability that a leaf's calibration tells from 0
  const DECIMAL = /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i;

  class SensorTreeError extends Error {}

  const quoted = (name) => `'${name}'`;
  const refuse = (message) => {
    throw new SensorTreeError(message);
  };

  // numbers -------------------------------------------------------------------------------

  // A number of a model file; those that JSON has no word for stand as {"float": "NaN"}.
  const plain = (value) =>
    value !== null && typeof value === "object" && "float" in value
      ? Number(value.float)
      : value;
  const plainAll = (values) => values.map(plain);

  // An amount of money to fifteen digits, so that 0.1 and 0.2 add up to 0.3.
  const onPaper = (amount) => Number(amount.toPrecision(15));
  const within = (cost, cap) => cost <= cap * (1 + ROUNDING);

  // NumPy's sum, in its order: eight at a time, halves of what is longer than 128.
  function sum(values, from = 0, n = values.length) {
    if (n < 8) {
      let total = n ? values[from] : 0;
      for (let i = 1; i < n; i++) total += values[from + i];
      return total;
    }
    if (n > 128) {
      let half = n >> 1;
      half -= half % 8;
      return sum(values, from, half) + sum(values, from + half, n - half);
    }
    const r = [];
    for (let j = 0; j < 8; j++) r[j] = values[from + j];
    let i = 8;
    for (; i < n - (n % 8); i += 8) for (let j = 0; j < 8; j++) r[j] += values[from + i + j];
    let total = r[0] + r[1] + (r[2] + r[3]) + (r[4] + r[5] + (r[6] + r[7]));
    for (; i < n; i++) total += values[from + i];
    return total;
  }

  function argmax(values) {
    let best = 0;
    for (let i = 1; i < values.length; i++) if (values[i] > values[best]) best = i;
    return best;
  }

  // Squares and products of numbers, the first with all, then the second with the rest.
  function products(values) {
    const made = [];
    for (let i = 0; i < values.length; i++)
      for (let j = i; j < values.length; j++) made.push(values[i] * values[j]);
    return made;
  }

  // transforms: values of a sensor's columns become numbers ----------------------------------

  const isMissing = (value) =>
    value === null || value === undefined || (typeof value === "number" && isNaN(value));

  // What Python finds equal has one key: 1, 1.0 and True; text is another thing.
  const keyOf = (value) =>
    typeof value === "string" ? `s${value}` : value === null ? "null" : `n${Number(value)}`;

  // Blank text says that there is no value.
  const isBlank = (value) => typeof value === "string" && value.trim() === "";

  function number(value) {
    if (isMissing(value)) return NaN;
    const found = typeof value === "boolean" ? Number(value) : value;
    if (typeof found === "number") return found;
    if (isBlank(found)) return NaN;
    if (!DECIMAL.test(found)) refuse(`${JSON.stringify(value)} is not a number.`);
    return Number(found);
  }

  class Categories {
    constructor(values) {
      this.values = plainAll(values);
      this.positions = new Map();
      this.missing = -1;
      this.values.forEach((value, i) => {
        if (typeof value === "number" && isNaN(value)) this.missing = i;
        else this.positions.set(keyOf(value), i);
      });
    }
    position(value) {
      if (isMissing(value)) {
        const none = this.positions.get("null");
        return this.missing >= 0 || none === undefined ? this.missing : none;
      }
      const found = this.positions.get(keyOf(value));
      return found === undefined ? -1 : found;
    }
    known(value) {
      const at = this.position(value);
      if (at >= 0) return at;
      const listed = this.values.slice(0, 8).map((v) => JSON.stringify(v)).join(", ");
      const more = this.values.length > 8 ? ", ..." : "";
      return refuse(`${JSON.stringify(value)} is not known; it may be ${listed}${more}.`);
    }
  }

  // The categories that each column of a one-hot encoder stands for; -1 is none of them.
  function oneHotColumns(part) {
    return part.categories.map((values, i) => {
      const rare = (part.rare || [])[i] || [];
      const dropped = part.dropped[i];
      const own = values.map((_, k) => k).filter((k) => k !== dropped && !rare.includes(k));
      const columns = own.map((k) => [k]);
      if (rare.length && !rare.includes(dropped))
        columns.push(part.unknown_is_rare ? [...rare, -1] : rare);
      return columns;
    });
  }

  // What each number that a transformer makes is called, and which of those given it is of.
  function namesAfter(part, given) {
    if (part.kind === "imputer") {
      const gaps = part.indicators.map((i) => [`${given[i][0]} is missing`, given[i][1]]);
      return [...part.kept.map((i) => given[i]), ...gaps];
    }
    if (part.kind === "one_hot")
      return oneHotColumns(part).flatMap((columns, i) =>
        columns.map((which) => {
          const [name, of] = given[i];
          const known = which.filter((at) => at >= 0);
          if (known.length > 1) return [`${name} = one of ${known.length} rare ones`, of];
          return [readingWords(name, plain(part.categories[i][known[0]])), of];
        })
      );
    if (part.kind === "levels")
      return part.readings.map((i, k) => [`${given[i][0]} is ${valueWords(part.levels[k])}`, given[i][1]]);
    if (part.kind === "columns")
      return part.parts.flatMap((p) => namesAfter(p.transformer, p.columns.map((i) => given[i])));
    if (part.kind === "pipeline")
      return part.steps.reduce((names, step) => namesAfter(step, names), given);
    return given;
  }

  const readingWords = (column, value) =>
    isMissing(value) ? `${column} is missing` : `${column} = ${valueWords(value)}`;

  // A value as a reader would write it, in Python's way.
  function valueWords(value) {
    if (typeof value !== "number") return said(value);
    if (Number.isInteger(value) && Math.abs(value) < 1e15) return `${value}`;
    const [digits, power] = value.toExponential(5).split("e").map(Number);
    if (power >= -4 && power < 6) return `${Number(value.toPrecision(6))}`;
    return `${digits}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
  }

  // A class as Python writes it.
  const said = (label) => (label === true ? "True" : label === false ? "False" : `${label}`);

  const TRANSFORMS = {
    passthrough: () => (values) => values,
    typed: (part) => (values) =>
      values.map((v, i) => (part.text.includes(i) ? (isBlank(v) ? null : v) : number(v))),
    imputer(part) {
      const fill = plainAll(part.fill);
      return (values) => {
        const missing = values.map(isMissing);
        const filled = values.map((v, i) => (missing[i] ? fill[i] : part.words ? v : number(v)));
        return [
          ...part.kept.map((i) => filled[i]),
          ...part.indicators.map((i) => Number(missing[i])),
        ];
      };
    },
    standardiser: (part) => (values) =>
      values.map((v, i) => (number(v) - part.center[i]) / part.scale[i]),
    range: (part) => (values) =>
      values.map((v, i) => {
        const found = number(v) * part.factor[i] + part.offset[i];
        if (!part.bounds) return found;
        return Math.min(Math.max(found, part.bounds[0]), part.bounds[1]);
      }),
    one_hot(part) {
      const tables = part.categories.map((values) => new Categories(values));
      const shown = oneHotColumns(part);
      return (values) =>
        tables.flatMap((table, i) => {
          const at = part.ignore_unknown ? table.position(values[i]) : table.known(values[i]);
          return shown[i].map((which) => Number(which.includes(at)));
        });
    },
    ordinal(part) {
      const tables = part.categories.map((values) => new Categories(values));
      const unknown = plain(part.unknown_value);
      const missing = plain(part.missing_value);
      return (values) =>
        tables.map((table, i) => {
          const at = unknown === null ? table.known(values[i]) : table.position(values[i]);
          if (at < 0) return unknown;
          return isMissing(table.values[at]) ? missing : at;
        });
    },
    levels: (part) => (values) =>
      part.readings.map((i, k) => (isNaN(values[i]) ? NaN : Number(values[i] === part.levels[k]))),
    columns(part) {
      const parts = part.parts.map((p) => [p.columns, transform(p.transformer)]);
      return (values) => parts.flatMap(([at, make]) => make(at.map((i) => values[i])));
    },
    pipeline(part) {
      const steps = part.steps.map((step) => transform(step));
      return (values) => steps.reduce((made, step) => step(made), values);
    },
  };

  // A part of a model by its kind; `all` is what such parts are called.
  function made(kinds, part, what, all) {
    if (!Object.hasOwn(kinds, part.kind))
      refuse(
        `${what} is of the kind ${quoted(part.kind)}, which only Python can run; fit the ` +
          `model with ${all} of the plain kinds.`
      );
    return kinds[part.kind](part);
  }

  const transform = (part, what = "a transformer") => made(TRANSFORMS, part, what, "transformers");

  // classifiers: readings become probabilities -----------------------------------------------

  function probabilities(scores) {
    if (scores.length > 1) {
      const most = Math.max(...scores);
      const likely = scores.map((s) => Math.exp(s - most));
      const total = sum(likely);
      return likely.map((l) => l / total);
    }
    const second = sigmoid(scores[0]);
    return [1 - second, second];
  }

  // Scores before they become probabilities, one for two classes.
  const SCORES = {
    logistic: (part) => (readings) => {
      const linear = readings.map((x, i) => (x - part.center[i]) / part.scale[i]);
      const terms = part.degree === 1 ? linear : linear.concat(products(linear));
      const n = part.intercept.length;
      const scores = new Array(n).fill(0);
      for (let t = 0; t < terms.length; t++)
        for (let k = 0; k < n; k++) scores[k] += terms[t] * part.coef[t * n + k];
      return scores.map((s, k) => s + part.intercept[k]);
    },
    boosted(part) {
      const numbers = plainAll(part.number);
      const missingLeft = new Set(part.missing_left);
      const n = part.baseline.length;
      const { size, readings: listed } = part.sets || { size: [], readings: [] };
      let end = 0;
      const sets = size.map((length) => listed.slice(end, (end += length)));
      return (given) => {
        // A set of levels, behind the last reading, is 1 if one of its readings is.
        const inside = sets.map((set) => (set.some((at) => given[at] === 1) ? 1 : 0));
        const readings = given.concat(inside);
        const scores = part.baseline.slice();
        part.roots.forEach((root, tree) => {
          let at = root;
          while (part.feature[at] >= 0) {
            const x = readings[part.feature[at]];
            const left = x <= numbers[at] || (isNaN(x) && missingLeft.has(at));
            at = left ? part.left[at] : part.right[at];
          }
          scores[tree % n] += numbers[at];
        });
        return scores;
      };
    },
  };

  const sigmoid = (score) => {
    const small = Math.exp(-Math.abs(score));
    return (score >= 0 ? 1 : small) / (1 + small);
  };

  // The height of rising steps, joined by lines, at a place; level beyond the ends.
  function between(x, at, heights) {
    const j = at.findIndex((end) => end > x) - 1;
    if (j === -1) return heights[0];
    if (j < -1) return heights[heights.length - 1];
    return ((heights[j + 1] - heights[j]) / (at[j + 1] - at[j])) * (x - at[j]) + heights[j];
  }

  // Probabilities of all classes from that of one, or of each for itself.
  function summing(each) {
    if (each.length === 1) return [1 - each[0], each[0]];
    const total = sum(each);
    return each.map((p) => (total ? p / total : 1 / each.length));
  }

  // Numbers of each output, and what a classifier says, become probabilities.
  const CALIBRATIONS = {
    sigmoid: (numbers) => (outputs) =>
      summing(outputs.map((x, i) => sigmoid(-(numbers[i][0] * x + numbers[i][1])))),
    isotonic: (numbers) => (outputs) =>
      summing(
        outputs.map((x, i) => {
          const half = numbers[i].length / 2;
          return between(x, numbers[i].slice(0, half), numbers[i].slice(half));
        })
      ),
    temperature: ([[inverse]], areScores) => (outputs) => {
      const [x] = outputs;
      const both = outputs.length > 1 ? outputs : [areScores ? -x : 1 - x, x];
      return probabilities(both.map((o) => inverse * (areScores ? o : Math.log(o + ROUNDING))));
    },
  };

  const CLASSIFIERS = {
    constant: (part) => () => part.proba,
    logistic(part) {
      const scores = SCORES.logistic(part);
      return (readings) => probabilities(scores(readings));
    },
    boosted(part) {
      const scores = SCORES.boosted(part);
      return (readings) => probabilities(scores(readings));
    },
    calibrated(part) {
      const { classifier: inner, outputs, reads_scores: scores, method } = part;
      const says = (scores ? SCORES : CLASSIFIERS)[inner.kind](inner);
      const calibrate = CALIBRATIONS[method](outputs.map(plainAll), scores);
      return (readings) => {
        const said = says(readings);
        return calibrate(!scores && said.length === 2 ? said.slice(1) : said);
      };
    },
    mean(part) {
      const each = part.classifiers.map((inner) => CLASSIFIERS[inner.kind](inner));
      return (readings) => {
        const said = each.map((says) => says(readings));
        return said[0].map((_, k) => said.reduce((total, p) => total + p[k], 0) / said.length);
      };
    },
  };

  const classifier = (part, what) => made(CLASSIFIERS, part, what, "leaves");

  // decisions: what is known becomes a score, above 0 for the positive child -------------------

  // Class probabilities but the first, the largest, its lead over the next, the entropy.
  function posteriorColumns(proba) {
    const sorted = proba.slice().sort((a, b) => a - b);
    const n = proba.length;
    const columns = [...proba.slice(1), sorted[n - 1]];
    if (n > 2) columns.push(sorted[n - 1] - sorted[n - 2]);
    columns.push(-sum(proba.map((p) => Math.log(Math.max(p, TINY)) * p)));
    return columns;
  }

  const PARTS = {
    raw: (readings) => readings,
    posterior: (_, proba) => posteriorColumns(proba()),
    "raw squares": products,
    "posterior squares": (_, proba) => products(posteriorColumns(proba())),
  };

  class Decision {
    constructor(features, coef) {
      this.parts = features.parts.map((part) =>
        typeof part === "string"
          ? PARTS[part]
          : transform(part, "the transformer given as decision_features")
      );
      this.features = features;
      this.coef = coef;
      this.own = features.center.map((_, i) => coef[i] / features.scale[i]);
    }
    columns(readings, proba, prices) {
      return this.parts.flatMap((part) => part(readings, proba)).concat(prices);
    }
    score(columns) {
      const { center, may_miss: mayMiss } = this.features;
      const terms = columns.map((x, i) => (x - center[i]) * this.own[i]);
      let value = sum(terms);
      if (!isFinite(value)) {
        value = sum(terms.map((t, i) => (isNaN(columns[i]) ? 0 : t)));
        const gone = mayMiss.map((i, k) => Number(isNaN(columns[i])) * this.coef[center.length + k]);
        if (gone.length) value += sum(gone);
      }
      return value + this.coef[this.coef.length - 1];
    }
    // What each column adds to the score.
    contributions(columns, meanings) {
      const { center, scale, may_miss: mayMiss } = this.features;
      const found = columns.map((x, i) => {
        const standardised = isNaN(x) ? 0 : (x - center[i]) / scale[i];
        const [name, about] = meanings[i];
        const contribution = this.coef[i] * standardised;
        return { name, about, value: isNaN(x) ? null : x, standardised, contribution };
      });
      mayMiss.forEach((i, k) => {
        const gone = Number(isNaN(columns[i]));
        const [name, about] = meanings[i];
        const contribution = gone * this.coef[center.length + k];
        found.push({ name: `${name} is missing`, about, value: gone, standardised: gone, contribution });
      });
      return found;
    }
  }

  // What the columns of one part of the decision features are called and are about: columns
  // of sensors, as [sensor, place], or "probability", or "other" where nobody knows.
  function partMeanings(part, readings, classes) {
    if (part === "raw") return readings;
    if (part === "posterior") {
      const lead = classes.length > 2 ? ["lead"] : [];
      const likely = classes.slice(1).map((label) => `P(${said(label)})`);
      const names = [...likely, "largest probability", ...lead, "entropy"];
      return names.map((name) => [name, "probability"]);
    }
    if (typeof part === "string") {
      const inner = partMeanings(part.replace(" squares", ""), readings, classes);
      return inner.flatMap(([name, about], a) =>
        inner.slice(a).map(([other, more], b) =>
          b ? [`${name} × ${other}`, together(about, more)] : [`${name}²`, about]
        )
      );
    }
    return namesAfter(part, readings);
  }

  function together(about, more) {
    if (typeof about === "string" || typeof more === "string")
      return about === more ? about : "other";
    const fresh = more.filter(([s, i]) => !about.some(([t, j]) => s === t && i === j));
    return [...about, ...fresh];
  }

  // sensors and money -------------------------------------------------------------------------

  class Sensors {
    constructor(problem) {
      this.list = problem.sensors.map((s, i) => ({
        ...s,
        cost: plain(s.cost),
        index: i,
        column_names: s.columns.map((c) => problem.columns[c]),
      }));
      this.byName = new Map(this.list.map((s) => [s.name, s]));
      this.names = this.list.map((s) => s.name);
      this.varying = this.list.filter((s) => s.varies);
      this.costs = this.list.map((s) => s.cost);
      this.ownCosts = this.list.map((s) => ("own_price" in s ? s.own_price : s.cost));
    }
    get(name) {
      return (
        this.byName.get(name) ||
        refuse(`${quoted(name)} is not a sensor; the sensors are ${this.names.join(", ")}.`)
      );
    }
    inOrder(names) {
      const wanted = new Set(names);
      return this.names.filter((name) => wanted.has(name));
    }
    // What others come after is first, then the least surcharge, then the declared order.
    purchaseOrder(names) {
      const waiting = this.inOrder(names)
        .map((name) => this.get(name))
        .sort((a, b) => a.surcharge - b.surcharge || a.index - b.index);
      const order = [];
      while (waiting.length) {
        const left = new Set(waiting.map((s) => s.name));
        let at = waiting.findIndex((s) => !s.after.some((name) => left.has(name)));
        at = at < 0 ? 0 : at;
        order.push(waiting.splice(at, 1)[0].name);
      }
      return order;
    }
    // What each sensor of a path is charged, in the order of buying.
    bill(path, prices, known) {
      const charged = new Map();
      const opened = new Set([...known.keys()].map((name) => this.get(name).group));
      for (const subset of path)
        for (const name of this.purchaseOrder(
          subset.filter((n) => !known.has(n) && !charged.has(n))
        )) {
          const sensor = this.get(name);
          const full = prices[sensor.index];
          const discounted = sensor.group !== null && opened.has(sensor.group);
          charged.set(name, discounted ? full - sensor.surcharge : full);
          opened.add(sensor.group);
        }
      return charged;
    }
    // Prices of one example; one that stands for a column does not include the surcharge.
    priceRow(given) {
      for (const sensor of this.varying) {
        const price = given[sensor.name];
        const byColumn = sensor.price_column !== null;
        if (!(sensor.name in given) || (byColumn && isMissing(price)))
          refuse(`the price of sensor ${quoted(sensor.name)} differs between examples; give it.`);
      }
      if (!Object.keys(given).length) return null;
      const row = this.ownCosts.slice();
      for (const [name, price] of Object.entries(given)) {
        const sensor = this.get(name);
        if (isMissing(price)) continue;
        const amount = checkAmount(price, `the price of sensor ${quoted(name)}`);
        row[sensor.index] = amount + (sensor.price_column !== null ? sensor.surcharge : 0);
      }
      for (const sensor of this.list)
        if (!isFinite(row[sensor.index]) || row[sensor.index] < sensor.surcharge)
          refuse(`the price of sensor ${quoted(sensor.name)} cannot be ${row[sensor.index]}.`);
      return row;
    }
  }

  function checkAmount(amount, what) {
    if (typeof amount !== "number" || !isFinite(amount) || amount < 0)
      refuse(`${what} must be a finite number of at least 0, got ${JSON.stringify(amount)}.`);
    return amount;
  }

  // the policy --------------------------------------------------------------------------------

  // A leaf's classifier, put right for the examples that end in the leaf.
  function putRight(judge, { slope, bias }) {
    const log = (p) => Math.log(Math.max(p, LEAST_IN_LEAF));
    return (readings) => probabilities(judge(readings).map((p, c) => slope * log(p) + bias[c]));
  }

  // A tree with what is known and done at its places.
  class Route {
    // `judges` are the classifiers by what is known, `own` those of single places.
    constructor(sensors, classes, { tree, decisions, flow, calibration }, judges, own) {
      const { names } = sensors;
      this.classes = classes;
      this.flow = flow;
      this.around = null; // the sensor that it does without, if it is a detour
      this.more = 0; // how much more is lost on it
      this.nNodes = tree.negative.length;
      this.nLeaves = tree.leaf_sensors.length;
      this.root = this.nNodes ? ~0 : 0;
      const functions = decisions.nodes.map(
        (node) => new Decision(decisions.features[node.features], node.coef)
      );
      this.places = new Map();
      const add = (number, path, more) => {
        const known = path.length ? path[path.length - 1] : [];
        const judge = own.get(number) || judges.get(known.join());
        this.places.set(number, {
          number,
          path: path.map((subset) => subset.map((i) => names[i])),
          sensors: known.map((i) => names[i]),
          judge: calibration && number >= 0 ? putRight(judge, calibration[number]) : judge,
          decision: null,
          refers: false, // whether who stops there is handed over to a person
          ...more,
        });
      };
      const walk = (vertex, path) => {
        const known = vertex < 0 ? tree.leaf_sensors[~vertex] : tree.node_sensors[vertex];
        if (!path.length || path[path.length - 1].join() !== known.join()) path = [...path, known];
        if (vertex < 0) {
          const refers = Boolean(tree.leaf_refers && tree.leaf_refers[~vertex]);
          add(~vertex, path, { leaves: [~vertex], refers });
          return [~vertex];
        }
        const [low, high] = [tree.negative[vertex], tree.positive[vertex]];
        const negative = walk(low, path);
        const positive = walk(high, path);
        const leaves = [...negative, ...positive];
        add(~vertex, path, {
          decision: functions[vertex],
          negative: ~low,
          positive: ~high,
          leaves,
          sides: [negative, positive],
        });
        return leaves;
      };
      walk(this.nNodes ? 0 : ~0, []);
      add(~this.nNodes, [], { leaves: [] });
    }

    // Ways out of the nodes that know what a place knows and follow it: where each ends, and
    // the last of these nodes with the side that it takes.
    ways(place) {
      return [place.negative, place.positive].flatMap((number, side) => {
        const end = this.places.get(number);
        const goesOn = end.decision && end.sensors.join("\n") === place.sensors.join("\n");
        return goesOn ? this.ways(end) : [{ end, node: ~place.number, side }];
      });
    }

    // The first of the nodes that know what a node knows.
    forkOf(place) {
      const above = [...this.places.values()].find((p) =>
        [p.negative, p.positive].includes(place.number)
      );
      const same = above && above.sensors.join("\n") === place.sensors.join("\n");
      return same ? this.forkOf(above) : place;
    }

    // Training rows that went a way, and how many of them it answers otherwise.
    changes({ end, node, side }) {
      const { answers } = this.flow;
      const rows = this.rows(end);
      return answers && rows ? { rows, changed: answers.changed[2 * node + side] } : null;
    }

    // Training rows that stopped at a fork, and how many a way would answer otherwise.
    wouldChange(fork, { node, side }) {
      const { answers } = this.flow;
      const stops = this.ways(fork).filter(({ end }) => end.sensors.length === fork.sensors.length);
      const rows = this.rows({ leaves: stops.flatMap(({ end }) => end.leaves) });
      return answers && rows ? { rows, changed: answers.would_change[2 * node + side] } : null;
    }

    // Training rows, by weight, that ended in the leaves of a place.
    rows({ leaves }) {
      const n = this.classes.length;
      const { leaf_classes: classes } = this.flow;
      return sum(leaves.map((leaf) => sum(classes.slice(leaf * n, (leaf + 1) * n))));
    }

    // Shares of the training rows at a node that went to its negative and positive side.
    shares(node) {
      const sides = this.places.get(~node).sides.map((leaves) => this.rows({ leaves }));
      const came = sides[0] + sides[1];
      return came ? sides.map((s) => s / came) : [null, null];
    }
  }

  // The document, if it is a model file that can be read here.
  function checked(document) {
    if (!document || document.format !== "sensortree-model")
      refuse("this is not a model file of sensortree.");
    if (!(document.format_version <= FORMAT_VERSION))
      refuse(
        `the model file has format_version ${document.format_version}; this page reads ` +
          `${FORMAT_VERSION} and before.`
      );
    return document;
  }

  // Classifiers by what is known.
  function judgesOf(entries, { names }) {
    const said = (at) => at.map((i) => names[i]).join(", ") || "nothing";
    return entries.map((entry) => {
      const what = `the classifier of the leaf that knows ${said(entry.sensors)}`;
      return [entry.sensors.join(), classifier(entry.classifier, what)];
    });
  }

  class Policy extends Route {
    // `fingerprint` is policy.digest in Python, by which it knows sessions of its own.
    constructor(document, fingerprint = null) {
      const { problem, reader, classifiers, own_classifiers: own } = checked(document);
      const sensors = new Sensors(problem);
      const classes = plainAll(problem.classes.values);
      const judges = new Map(judgesOf(classifiers, sensors));
      const single = own.map(({ place, classifier: part }) => [
        place,
        classifier(part, `the classifier of place ${place}`),
      ]);
      super(sensors, classes, document, judges, new Map(single));
      this.fingerprint = fingerprint;
      this.sensors = sensors;
      this.costWeight = problem.cost_weight;
      this.maxCost = problem.max_cost;
      this.loss = problem.loss;
      this.leastConfidence = problem.referral ? problem.referral.least_confidence : 0;
      this.allowNan = reader.allow_nan;
      this.transformers = reader.transformers;
      // What a missing number becomes, by sensor and column, where training is remembered.
      const middles = (reader.seen || []).map((columns) => columns.map((c) => c.middle));
      this.middles = new Map(middles.map((own, i) => [sensors.names[i], own]));
      this.transforms = new Map(
        Object.entries(reader.transformers).map(([name, part]) => [
          name,
          transform(part, `the transformer of sensor ${quoted(name)}`),
        ])
      );
      // Detours by the sensor that they do without, each with how much more is lost there.
      const detours = document.detours || { around: [], classifiers: [] };
      const known = new Map([...judges, ...judgesOf(detours.classifiers, sensors)]);
      this.detours = new Map(
        detours.around.map((entry) => {
          const route = new Route(sensors, classes, entry, known, new Map());
          route.around = sensors.names[entry.sensor];
          route.more = entry.flow.total_loss - entry.usual_loss;
          return [route.around, route];
        })
      );
    }

    session(given = {}) {
      return new Session(this, given);
    }

    // A session again, from what its toDict gave: what happened is done again, in order.
    resume(state) {
      if (state.format !== "sensortree-session" || state.model !== this.fingerprint)
        refuse("this is not the state of a session that was begun with this model.");
      const session = this.session(state);
      for (const [kind, sensor, ...told] of state.log) session[kind](sensor, ...told);
      return session;
    }

    // The session of an example of which everything is at hand, in the order of the columns.
    follow(row, given = {}) {
      const session = this.session(given);
      while (session._end === null) {
        const name = session._pending[0];
        session.tell(name, this.sensors.get(name).columns.map((c) => row[c]));
      }
      return session;
    }

    // What a place's decision features are called and are about.
    featureMeanings(place) {
      const readings = place.sensors.flatMap((name) => {
        const columns = this.sensors.get(name).column_names.map((column, i) => [column, i]);
        const part = this.transformers[name];
        const names = part ? namesAfter(part, columns) : columns;
        return names.map(([own, at]) => [own, [[name, at]]]);
      });
      return place.decision.features.parts
        .flatMap((part) => partMeanings(part, readings, this.classes))
        .concat(this.sensors.varying.map((s) => [`price of ${s.name}`, "price"]));
    }

    // Values of a sensor in the order of its columns; what is missing is null.
    ordered(name, values) {
      const { column_names: columns } = this.sensors.get(name);
      let found = values;
      if (values !== null && typeof values === "object" && !Array.isArray(values)) {
        const lacking = columns.find((c) => !Object.hasOwn(values, c));
        const odd = Object.keys(values).find((c) => !columns.includes(c));
        if (lacking !== undefined || odd !== undefined)
          refuse(
            `sensor ${quoted(name)} was told ` +
              (odd !== undefined
                ? `column ${quoted(odd)}, which it does not read`
                : `nothing for column ${quoted(lacking)}`) +
              `; its columns are ${columns.join(", ")}.`
          );
        found = columns.map((c) => values[c]);
      } else if (!Array.isArray(values)) found = [values];
      if (found.length !== columns.length)
        refuse(
          `sensor ${quoted(name)} was told ${found.length} values, but reads ` +
            `${columns.length} columns: ${columns.join(", ")}.`
        );
      return found.map((v) => (isMissing(v) ? null : v));
    }

    // Values of a sensor, in the order of its columns, as numbers.
    read(name, ordered) {
      const make = this.transforms.get(name);
      let reading = (make ? make(ordered) : ordered).map(number);
      const middle = make || this.allowNan ? undefined : this.middles.get(name);
      if (middle) reading = reading.map((v, i) => (isNaN(v) ? middle[i] : v));
      for (const value of reading) {
        if (Math.abs(value) > LARGEST)
          refuse(`sensor ${quoted(name)} reads ${value}, which is too large to be right.`);
        if (isNaN(value) && !this.allowNan)
          refuse(`sensor ${quoted(name)} needs a value for each of its columns.`);
      }
      return reading;
    }

    // The answer of the least expected loss; the first of equals.
    label(proba) {
      const n = this.classes.length;
      if (!this.loss) return argmax(proba);
      const expected = proba.map((_, a) => {
        let total = 0;
        for (let c = 0; c < n; c++) total += proba[c] * this.loss[c * n + a];
        return total;
      });
      return argmax(expected.map((loss) => -loss));
    }

    // Whether who stops at a place, with these probabilities, is handed over to a person.
    handsOver(place, proba) {
      return place.refers || proba[this.label(proba)] < this.leastConfidence;
    }

  }

  // a session ---------------------------------------------------------------------------------

  class Session {
    constructor(policy, { known = {}, limit = null, prices = {} } = {}) {
      this.policy = policy;
      if (limit !== null) checkAmount(limit, "the limit of a session");
      const caps = [limit, policy.maxCost].filter((cap) => cap !== null);
      this.limit = caps.length ? Math.min(...caps) : null;
      const row = policy.sensors.priceRow(prices);
      this._prices = row || policy.sensors.costs;
      this._seen = row ? policy.sensors.varying.map((s) => row[s.index]) : [];
      this._given = { limit, prices };
      this.log = []; // what happened, in order, as Python keeps it
      this.values = new Map();
      this._readings = new Map();
      this.acquired = [];
      this.lost = [];
      this.spent = 0;
      this._paid = new Map(); // what was paid for sensors that were bought
      for (const [name, values] of Object.entries(known)) {
        const ordered = policy.ordered(name, values);
        this._readings.set(name, policy.read(name, ordered));
        this.values.set(name, ordered);
      }
      this._begun = Object.fromEntries(this.values);
      this._posteriors = new Map();
      this._go();
    }

    // The place where it stops, or that it is going to; of `tree`, the policy or a detour.
    get place() {
      return this.tree.places.get(this._end === null ? this._at : this._end);
    }

    // Nodes that it passed, each with whether the positive side was taken.
    get passed() {
      return this._route.map(({ node, score }) => [node, score > 0]);
    }

    // Everything that happened, as Python's Session.to_dict gives it.
    toDict() {
      return {
        format: "sensortree-session",
        format_version: 1,
        model: this.policy.fingerprint,
        known: this._begun,
        ...this._given,
        log: this.log.map((event) => event.slice()),
      };
    }

    ask() {
      return this._end === null ? this.step() : null;
    }

    // Values of a sensor, by column or in their order; `replace` says it is a correction.
    tell(name, values, replace = false) {
      const ordered = this.policy.ordered(name, values);
      const before = this.values.get(name);
      if (before !== undefined) {
        if (before.every((value, i) => keyOf(value) === keyOf(ordered[i]))) return;
        if (!replace)
          refuse(`sensor ${quoted(name)} was told before; pass true if this is a correction.`);
      }
      const reading = this.policy.read(name, ordered);
      this.log.push(["tell", name, ordered, replace]);
      if (this._pending.includes(name)) {
        this._paid.set(name, this.priceOf(name));
        this.spent = onPaper(this.spent + this._paid.get(name));
        this.acquired.push(name);
      }
      if (before !== undefined) this._posteriors = new Map(); // they were of other values
      this.values.set(name, ordered);
      this._readings.set(name, reading);
      this.lost = this.lost.filter((n) => n !== name);
      this._go();
    }

    // `because` says why, if anybody knows.
    unavailable(name, because = null) {
      this.policy.sensors.get(name);
      if (this._readings.has(name))
        refuse(`sensor ${quoted(name)} has been told; what is known cannot be unavailable.`);
      if (this.lost.includes(name)) return;
      this.log.push(because ? ["unavailable", name, because] : ["unavailable", name]);
      this.lost.push(name);
      this._go();
    }

    // Price of a sensor now.
    priceOf(name) {
      return this._price([[name]]);
    }

    step() {
      const last = this._last;
      const why = last && this._reason(last);
      if (this._end !== null) {
        const proba = this._posterior(this.place);
        return {
          action: "stop", sensor: null, sensors: [], columns: [], cost: 0,
          spent: this.spent, worst_case_remaining: 0, proba, why,
          referred: this.policy.handsOver(this.place, proba),
        };
      }
      const sensor = this._pending[0];
      return {
        action: "acquire",
        sensor,
        sensors: this._pending.slice(),
        columns: this.policy.sensors.get(sensor).column_names,
        cost: this.priceOf(sensor),
        spent: this.spent,
        worst_case_remaining: this._worstCase(this.place),
        proba: this._posterior(this.standing.place),
        why,
        referred: false,
      };
    }

    decision() {
      if (this._end === null) refuse(`the policy still asks for ${quoted(this._pending[0])}.`);
      return this._decided(this, this._because, this._reroutingLoss);
    }

    // The answer by what is known where the policy stands, whether it still asks or not.
    soFar() {
      return this._end === null
        ? this._decided(this.standing, "asked to stop", 0)
        : this.decision();
    }

    // The node that decided last.
    get _last() {
      return this._route.length ? this._route[this._route.length - 1] : null;
    }

    // That node, or the start, with its tree.
    get standing() {
      const { tree, node } = this._last || { tree: this.policy, node: this.policy.nNodes };
      return { tree, place: tree.places.get(~node) };
    }

    _decided({ tree, place }, because, loss) {
      const { policy } = this;
      const proba = this._posterior(place);
      return {
        label: policy.classes[policy.label(proba)],
        proba,
        spent: this.spent,
        saved: this._price([policy.sensors.names]),
        acquired: this.acquired.slice(),
        place: place.number,
        stopped_because: because,
        rerouting_loss: loss,
        unavailable: this._failures(),
        around: tree.around,
        referred: policy.handsOver(place, proba),
      };
    }

    // Sensors that cannot be had, and why, where that was said.
    _failures() {
      const said = this.log.filter(([kind]) => kind === "unavailable");
      const because = new Map(said.map(([, name, why = null]) => [name, why]));
      return Object.fromEntries(this.lost.map((name) => [name, because.get(name)]));
    }

    // The decisions on the way, each with what spoke for it; the last is step().why.
    get route() {
      return this._route.map((passed) => this._reason(passed));
    }

    _price(path, known = this._readings) {
      const bill = this.policy.sensors.bill(path, this._prices, known);
      let total = 0;
      for (const price of bill.values()) total += onPaper(price);
      return onPaper(total);
    }

    _way(place) {
      return this._price(this.tree.places.get(place).path);
    }

    _known(place) {
      return place.sensors.flatMap((name) => this._readings.get(name));
    }

    _posterior(place) {
      if (!this._posteriors.has(place))
        this._posteriors.set(place, place.judge(this._known(place)));
      return this._posteriors.get(place);
    }

    _columns(place) {
      return place.decision.columns(
        this._known(place), () => this._posterior(place), this._seen
      );
    }

    _reason({ tree, node, score }) {
      const { policy } = this;
      const place = tree.places.get(~node);
      const columns = this._columns(place);
      const values = new Map(this.values);
      const each = () => place.decision.contributions(columns, policy.featureMeanings(place));
      const largest = (a, b) => Math.abs(b.contribution) - Math.abs(a.contribution);
      return {
        node,
        score,
        share: tree.shares(node)[Number(score > 0)],
        proba: this._posterior(place),
        // What each feature adds to the score, largest first.
        get contributions() {
          return each().sort(largest);
        },
        // The same by what it is about: a column with its value, the probability, a price.
        get influences() {
          const sums = new Map();
          for (const { name, about, value, contribution } of each()) {
            const things =
              typeof about === "string" ? [] : about.slice().sort().map(([sensor, at]) => ({
                column: policy.sensors.get(sensor).column_names[at],
                value: values.get(sensor)[at],
              }));
            const words =
              about === "probability"
                ? "the probability"
                : things.map((t) => readingWords(t.column, t.value)).join(" and ") ||
                  `${name} = ${value === null ? "missing" : valueWords(value)}`;
            const sum = sums.get(words) || { words, about, things, name, value, contribution: 0 };
            sum.contribution += contribution;
            sums.set(words, sum);
          }
          return [...sums.values()].sort(largest);
        },
      };
    }

    // Choices on the way: what was known, what was done, and what that changes.
    explain() {
      const forks = [];
      this._route.forEach((passed, i) => {
        const { tree, node, score } = passed;
        const here = tree.places.get(~node);
        const next = this._route[i + 1];
        const fork = tree.forkOf(here);
        const to = next ? next.tree.places.get(~next.node) : this.place;
        if (next && next.tree === tree && tree.forkOf(to) === fork) return;
        const elsewhere = to === here || (next ? next.tree : this.tree) !== tree;
        const ways = tree.ways(fork);
        const taken = elsewhere ? null : ways.find(({ end }) => end.leaves.includes(to.leaves[0]));
        const decided = tree.places.get(score > 0 ? here.positive : here.negative).leaves;
        const fresh = (place) => place.sensors.filter((name) => !here.sensors.includes(name));
        const others = ways
          .filter(({ end }) => fresh(end).length)
          .map((way) => ({
            sensors: fresh(way.end),
            costs: way.end.leaves.map((leaf) => this._price(tree.places.get(leaf).path)),
            change: tree.wouldChange(fork, way),
          }));
        const changed = ({ change }) => (change ? change.changed : 0);
        forks.push({
          known: here.sensors,
          reason: this._reason(passed),
          // Whether what was decided could not be had or paid.
          heldUp: elsewhere || !to.leaves.every((leaf) => decided.includes(leaf)),
          bought: fresh(to),
          refers: to.refers,
          share: taken && tree.rows(fork) ? tree.rows(taken.end) / tree.rows(fork) : null,
          change: taken && tree.changes(taken),
          // Of what it stopped before: what would have changed most answers.
          useful: others[argmax(others.map(changed))] || null,
        });
      });
      return forks;
    }

    _canBeHad(sensors) {
      return sensors.every((name) => this._readings.has(name) || !this.lost.includes(name));
    }

    _reachesEnd(place) {
      if (!this._canBeHad(this.tree.places.get(place).sensors)) return false;
      if (this.limit === null) return true;
      const more = this._way(place);
      return (more === 0 || within(this.spent + more, this.limit)) && this._allows(place);
    }

    // Whether the limit allows a whole way, if all could be had.
    _allows(place) {
      return this.limit === null || within(this._whole(place), this.limit);
    }

    // Price of a whole way, with the detours on it, before anything was bought.
    _whole(place) {
      const free = [...this._readings].filter(([name]) => !this._paid.has(name));
      return this._price([...this._passed, ...this.tree.places.get(place).path], new Map(free));
    }

    // The same, less what was paid for what is on the way.
    _owed(place) {
      const onWay = new Set([...this._passed, this.tree.places.get(place).sensors].flat());
      let paid = 0;
      for (const name of [...this._paid.keys()].sort())
        if (onWay.has(name)) paid += this._paid.get(name);
      return this._whole(place) - paid;
    }

    // What the root knows is bought whenever it can be, as nothing is known before.
    _ends(place) {
      return place.number === this.tree.root ? [place.number] : place.leaves;
    }

    _reaches(place) {
      if (!this.lost.length && this.limit === null) return true;
      return this._ends(place).some((end) => this._reachesEnd(end));
    }

    _worstCase(place) {
      const bound = this.lost.length || this.limit !== null;
      const below = bound ? place.leaves.filter((leaf) => this._reachesEnd(leaf)) : place.leaves;
      const ways = [...below.map((leaf) => this._way(leaf)), ...this._waysRound(place)];
      return ways.length ? Math.max(...ways) : this._way(place.number);
    }

    // Most that may be paid on detours from a place, if some can be taken.
    _waysRound(place) {
      const routes = this.lost.filter((name) => this._open.has(name)).map((n) => this._open.get(n));
      const held = routes.length ? place.leaves.filter((end) => !this._reachesEnd(end)) : [];
      return held.flatMap((end) => {
        const { path } = this.tree.places.get(end);
        const stop = path.findIndex((subset) => !this._canBeHad(subset));
        const had = stop < 0 ? path : path.slice(0, stop);
        const leaves = ({ places, nLeaves }) => Array.from({ length: nLeaves }, (_, k) => places.get(k));
        let ways = leaves(routes[0])
          .filter((leaf) => this._canBeHad(leaf.sensors))
          .map((leaf) => leaf.path);
        if (routes.length > 1) {
          // One may lead to the other.
          const all = new Set(routes.flatMap(leaves).flatMap((leaf) => leaf.sensors));
          ways = [[[...all].filter((name) => !this.lost.includes(name))]];
        }
        const left = this.limit === null ? Infinity : Math.max(this.limit - this.spent, 0);
        return ways.map((way) => Math.min(this._price([...had, ...way]), left));
      });
    }

    // From the root, until a sensor is wanted or the end is reached.
    _go() {
      this.tree = this.policy;
      this._open = new Map(this.policy.detours);
      this._passed = [];
      this._at = this.policy.root;
      this._end = null;
      this._pending = [];
      this._because = "policy";
      this._reroutingLoss = 0;
      this._route = [];
      while (this._end === null) {
        const { tree } = this;
        const place = tree.places.get(this._at);
        const missing = place.sensors.filter((name) => !this._readings.has(name));
        if (missing.length && !this._reaches(place)) {
          this._reroute(place);
          continue;
        }
        if (missing.length) {
          this._pending =
            missing.length === 1
              ? missing
              : [...this.policy.sensors.bill(place.path, this._prices, this._readings).keys()];
          return;
        }
        if (place.decision === null) {
          this._end = this._at;
          return;
        }
        const child = this._decide(tree, place);
        if (this._reaches(child)) this._at = child.number;
        else this._reroute(child);
      }
    }

    // Note what is decided at a node; where that leads.
    _decide(tree, place) {
      const score = place.decision.score(this._columns(place));
      this._route.push({ tree, node: ~place.number, score });
      this._passed.push(...place.path);
      return tree.places.get(score > 0 ? place.positive : place.negative);
    }

    // Take a detour if one is open; else the best that is left of the last node. Where the
    // limit forbids what was wanted, the best that it allows is wanted instead.
    _reroute(wanted) {
      const last = this._last;
      let held = this.lost.length > 0 && this._ends(wanted).some((end) => this._allows(end));
      if (!held && last) {
        const best = this._bestPlace(last.node, (leaf) => this._allows(leaf));
        if (best >= 0 && !this._reachesEnd(best)) {
          wanted = this.tree.places.get(best);
          held = true;
        }
      }
      this._because = held || this.tree.around !== null ? "unavailable" : "limit";
      const around = held ? this._detour(wanted) : undefined;
      if (around !== undefined) {
        this.tree = this._open.get(around);
        this._open.delete(around);
        this._at = this.tree.root;
        this._reroutingLoss = this.tree.more;
      } else if (last) this._takeWhatIsLeft(last);
      else this._end = ~this.policy.nNodes;
    }

    // Sensor that it is led around: one that all ends need comes first, then the first.
    _detour(wanted) {
      const ends = this._ends(wanted).map((end) => this.tree.places.get(end).sensors);
      const needed = (name) => ends.every((known) => known.includes(name));
      const names = this.policy.sensors.inOrder(this.lost);
      const ranked = [...names.filter(needed), ...names.filter((name) => !needed(name))];
      return ranked.find((name) => this._open.has(name) && this._enters(this._open.get(name)));
    }

    _enters(route) {
      const before = this.tree;
      this.tree = route;
      const enters = this._reachesEnd(route.root);
      this.tree = before;
      return enters;
    }

    // From a node, take the best reachable leaf below it, or stop.
    _takeWhatIsLeft(last) {
      const { tree } = this;
      const { flow } = tree;
      let { node } = last;
      const best = this._bestPlace(node, (leaf) => this._reachesEnd(leaf));
      let after;
      if (best < 0) {
        this._asFarAsKnown(last);
        node = ~this._end;
        after = flow.stop_loss[node];
      } else {
        this._at = best;
        after = flow.leaf_loss[node * tree.nLeaves + best];
      }
      this._reroutingLoss = tree.more + (after - flow.kept_loss[node]);
    }

    // The leaf below a node where it is served best, of what it can do; or stopping there.
    _bestPlace(node, can) {
      const { tree } = this;
      const { flow } = tree;
      const here = this._owed(~node);
      const leaves = tree.places.get(~node).leaves.filter(can).sort((a, b) => a - b);
      const risks = leaves.map(
        (leaf) =>
          flow.leaf_loss[node * tree.nLeaves + leaf] +
          this.policy.costWeight * (this._owed(leaf) - here)
      );
      const least = Math.min(...risks); // Infinity if there is none
      if (!isFinite(least) || flow.stop_loss[node] < least - ROUNDING) return ~node;
      return leaves[risks.findIndex((risk) => risk <= least + ROUNDING)];
    }

    // Stop at a node, or where it leads by what is known already, if more is known there.
    _asFarAsKnown({ tree, node, score }) {
      let end = tree.places.get(~node);
      let ahead = tree.places.get(score > 0 ? end.positive : end.negative);
      let passed = this._route.length;
      while (ahead.decision && ahead.sensors.every((name) => this._readings.has(name))) {
        const here = ahead;
        ahead = this._decide(tree, here);
        if (here.sensors.length > end.sensors.length) {
          end = here;
          passed = this._route.length;
        }
      }
      this._route.length = passed;
      this._end = end.number;
    }
  }

  return { Policy, Session, SensorTreeError, said };
});
