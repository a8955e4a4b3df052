// The page: one screen at a time, made anew after every event. All that was told stands in
// the session's log; going back is the log without its end.
(function () {
  "use strict";

  const { Policy, SensorTreeError, said } = SensorTree;
  const { draw } = SensorTreePicture;
  const FEW = 5; // choices that are buttons rather than a list
  const [FOR, AGAINST, SMALL] = [3, 2, 0.2]; // reasons that are told, and what is too small
  const LISTED = 6; // answers with a bar

  const held = (id) => JSON.parse(document.getElementById(id).textContent);
  const page = held("page");
  const model = held("model");
  const policy = new Policy(model, page.fingerprint);
  const { sensors } = policy;

  // words -----------------------------------------------------------------------------------

  let language = page.language || spoken();

  function spoken() {
    const wanted = (navigator.languages || []).map((tag) => tag.slice(0, 2).toLowerCase());
    return wanted.find((tag) => Object.hasOwn(page.texts, tag)) || "en";
  }

  const t = (key, gaps = {}) =>
    page.texts[language][key].replace(/\{(\w+)\}/g, (_, name) => gaps[name]);

  function number(value) {
    if (value !== 0 && (Math.abs(value) >= 1e12 || Math.abs(value) < 1e-4))
      return String(Number(value.toPrecision(6)));
    const digits = { maximumSignificantDigits: 6, useGrouping: Math.abs(value) >= 1e4 };
    return new Intl.NumberFormat(language, digits).format(value);
  }
  const money = (amount) => (page.unit ? `${number(amount)} ${page.unit}` : number(amount));
  const shown = (value) =>
    value === null ? t("missing") : typeof value === "number" ? number(value) : said(value);
  // Numbers of columns that hold dates are days after 1970, times parts of a day.
  const DAY = 86400;
  const dated = new Map(
    page.questions.map((question, at) => [model.problem.columns[at], question.date])
  );
  function dayText(value, kind) {
    const [whole, part] = [Math.floor(value), Math.round((value - Math.floor(value)) * DAY)];
    const iso = new Date((whole * DAY + part) * 1000).toISOString();
    const clock = iso.slice(11, part % 60 ? 19 : 16);
    return kind === "time" ? clock : kind === "date" ? iso.slice(0, 10) : `${iso.slice(0, 10)}T${clock}`;
  }
  const shownIn = (column, value) =>
    dated.get(column) && typeof value === "number" && Math.abs(value) < 1e6
      ? dayText(value, dated.get(column)).replace("T", " ")
      : shown(value);
  const listed = (names) => names.join(", ") || t("nothing");

  // What is not certain is not written as such.
  function chance(p) {
    const percent = (x) =>
      new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: 1 }).format(x);
    if (p > 0 && p < 0.001) return `< ${percent(0.001)}`;
    if (p < 1 && p > 0.999) return `> ${percent(0.999)}`;
    return percent(p);
  }

  // elements ----------------------------------------------------------------------------------

  function el(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (typeof value === "function") made.addEventListener(key, value);
      else if (value === true) made.setAttribute(key, "");
      else if (value !== false && value !== null) made.setAttribute(key, value);
    }
    made.append(...children.filter((child) => child !== null));
    return made;
  }

  const button = (key, click, more = {}) =>
    el("button", { type: "button", click, ...more }, t(key));

  const header = el("header");
  const main = el("main");
  const footer = el("footer");
  const live = el("p", { class: "unseen", role: "status", "aria-live": "polite" });

  // what is so far -----------------------------------------------------------------------------

  const drafts = new Map(); // what was typed, by sensor, for who goes back
  let prices = {};
  let session = null; // null while prices are asked for
  let paid = new Map(); // what each sensor cost
  let editing = null; // the sensor that is being corrected
  let stopped = false; // whether the person wants no more questions

  // Let everything happen again, in order.
  function replay(log) {
    session = policy.session({ prices });
    paid = new Map();
    for (const event of log) happen(event);
  }

  function happen([kind, sensor, ...told]) {
    const before = session.spent;
    const count = session.acquired.length;
    session[kind](sensor, ...told);
    if (session.acquired.length > count) paid.set(sensor, session.spent - before);
  }

  function begin() {
    drafts.clear();
    prices = {};
    editing = null;
    stopped = false;
    session = null;
    if (!sensors.varying.length) replay([]);
    render();
  }

  function back() {
    if (editing !== null) editing = null;
    else if (stopped) stopped = false;
    else if (session.log.length) replay(session.log.slice(0, -1));
    else if (sensors.varying.length) session = null;
    render();
  }

  // A sensor that was not available is asked for again: what came after is asked again too.
  function askAgain(name) {
    const at = session.log.findIndex(([kind, sensor]) => kind === "unavailable" && sensor === name);
    stopped = false;
    editing = null;
    replay(session.log.slice(0, at));
    render();
  }

  // numbers that are typed --------------------------------------------------------------------

  const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

  // The number that was typed; an error's key if it is none.
  function typed(text) {
    let found = text.trim().replace(/^[−–]/, "-");
    const comma = new Intl.NumberFormat(language).format(1.5).includes(",");
    const thousands = comma ? /^[+-]?\d{1,3}(\.\d{3})+(,\d*)?$/ : /,/;
    if (thousands.test(found) || /[\s'’]/.test(found)) return "no_thousands";
    if (comma) found = found.replace(",", ".");
    return DECIMAL.test(found) && isFinite(Number(found)) ? Number(found) : "needs_number";
  }

  // The day that a date field holds, with the time as its fraction.
  function typedDay(text, kind) {
    const found = /^(?:(\d{4,6})-(\d\d)-(\d\d))?T?(?:(\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?)?$/.exec(text);
    if (text === "" || found === null) return kind === "time" ? "needs_time" : "needs_date";
    const [year, month, day, hour, minute, second] = found.slice(1).map((v) => Number(v || 0));
    const days = kind === "time" ? 0 : Date.UTC(year, month - 1, day) / (DAY * 1000);
    return days + (hour * 3600 + minute * 60 + second) / DAY;
  }

  const asTyped = (value) => {
    const text = String(value);
    const comma = new Intl.NumberFormat(language).format(1.5).includes(",");
    return comma && !/e/.test(text) ? text.replace(".", ",") : text;
  };

  // fields: each has a node, a value that may be an error, and a place for the error -----------

  function describe(control, id) {
    const hint = el("p", { class: "hint", id: `${id}-hint` });
    const error = el("p", { class: "error", id: `${id}-error` });
    control.setAttribute("aria-describedby", `${id}-hint ${id}-error`);
    control.addEventListener("input", () => complain(""));
    const complain = (text) => {
      error.textContent = text;
      control.setAttribute("aria-invalid", String(text !== ""));
    };
    return { hint, error, complain };
  }

  // A value that a column may have, to try others beside it.
  const possible = ({ choices }) => (choices === null ? 0 : choices[0]);

  // What the runtime says about a value of one column; "" if it can be used.
  function objection(sensor, at, value) {
    const values = sensor.columns.map((c) => possible(page.questions[c]));
    values[at] = value;
    try {
      policy.read(sensor.name, values);
      return "";
    } catch (error) {
      if (error instanceof SensorTreeError) return error.message;
      throw error;
    }
  }

  function field(sensor, at, draft) {
    const question = page.questions[sensor.columns[at]];
    const may = objection(sensor, at, null) === "";
    const made =
      question.choices === null
        ? numberField(sensor, at, question, draft, may)
        : question.choices.length <= FEW
          ? buttonsField(sensor, at, question, draft, may)
          : listField(sensor, at, question, draft, may);
    return made;
  }

  const fieldId = (at) => `value-${at}`;

  function numberField(sensor, at, question, draft, may) {
    const id = fieldId(at);
    const kind = question.date;
    const input = kind
      ? el("input", { type: kind, id, step: kind === "date" ? 1 : "any" })
      : el("input", {
          type: "text", id, inputmode: "decimal", autocomplete: "off", spellcheck: "false",
        });
    const { hint, error, complain } = describe(input, id);
    const ranged = question.low !== undefined;
    const words = (value) => shownIn(sensor.column_names[at], value);
    if (ranged) hint.textContent = t("range", { low: words(question.low), high: words(question.high) });
    const example = asTyped(ranged ? question.low : 1.5);
    const box = el("input", { type: "checkbox", change: () => toggle() });
    const toggle = () => {
      input.disabled = box.checked;
      complain("");
    };
    const label = `${sensor.column_names[at]}: ${t("missing")}`;
    box.setAttribute("aria-label", label);
    if (draft !== undefined) {
      if (draft === null) box.checked = may;
      else input.value = kind ? dayText(draft, kind) : asTyped(draft);
      input.disabled = box.checked;
    }
    let confirmed; // what was doubted, and is right if it comes again
    const doubt = (value) => {
      const [low, high] = ranged ? [words(question.low), words(question.high)] : [];
      if (value === null) return question.always ? t("never_missing") : "";
      const odd = ranged && (value < question.least || value > question.most);
      return odd ? t("outside", { low, high, value: words(value) }) : "";
    };
    return {
      node: el(
        "div", { class: "field" },
        el("label", { for: id }, sensor.column_names[at]), hint, input,
        may ? el("label", { class: "missing" }, box, t("missing")) : null, error
      ),
      focus: () => (box.checked ? box : input).focus(),
      complain,
      value() {
        const read = kind ? (text) => typedDay(text, kind) : typed;
        const value = box.checked ? null : read(input.value);
        if (typeof value === "string") {
          const missing = t("missing");
          const key = value === "needs_number" && may ? "needs_value" : value;
          complain(t(key, { example, missing }));
          return undefined;
        }
        const doubted = doubt(value);
        if (doubted === "" || confirmed === value) return value;
        confirmed = value;
        return void complain(doubted);
      },
    };
  }

  // What a choice of a list or of buttons stands for; "other" is written beside it.
  function choices(question, may) {
    const found = question.choices.map((value) => ({ value, words: shown(value) }));
    if (question.open) found.push({ value: undefined, words: t("other") });
    if (may) found.push({ value: null, words: t("missing") });
    return found;
  }

  function chosen(options, draft) {
    if (draft === undefined) return -1;
    const at = options.findIndex(({ value }) => value === draft);
    return at >= 0 ? at : options.findIndex(({ value }) => value === undefined);
  }

  function otherField(id, question, label, draft) {
    const input = el("input", { type: "text", id: `${id}-other`, "aria-label": label });
    const texts = question.choices.some((value) => typeof value === "string");
    if (draft !== undefined && draft !== null && !question.choices.includes(draft))
      input.value = texts ? draft : asTyped(draft);
    const value = () => {
      if (texts || input.value.trim() === "") return input.value.trim() || "needs_other";
      return typed(input.value);
    };
    const wrong = () => input.value.trim() === "" || (!texts && typeof value() === "string");
    return { input, value, wrong };
  }

  function choiceField({ node, control, id, question, options, pick, focus, draft, name }) {
    const { hint, error, complain } = describe(control, id);
    const other = otherField(id, question, `${name}: ${t("other")}`, draft);
    const show = () => {
      const at = pick();
      other.input.hidden = at < 0 || options[at].value !== undefined;
      complain("");
    };
    control.addEventListener("change", show);
    node.append(hint, other.input, error);
    show();
    return {
      node,
      focus,
      complain,
      value() {
        const at = pick();
        if (at < 0) return void complain(t("needs_choice"));
        if (options[at].value !== undefined) return options[at].value;
        if (other.wrong())
          return void complain(t(other.value(), { example: asTyped(1.5) }));
        return other.value();
      },
    };
  }

  function listField(sensor, at, question, draft, may) {
    const id = fieldId(at);
    const options = choices(question, may);
    const now = chosen(options, draft);
    const control = el(
      "select", { id },
      el("option", { value: -1 }, t("choose")),
      ...options.map(({ words }, i) => el("option", { value: i, selected: i === now }, words))
    );
    const name = sensor.column_names[at];
    const node = el("div", { class: "field" }, el("label", { for: id }, name), control);
    const pick = () => Number(control.value);
    const focus = () => control.focus();
    return choiceField({ node, control, id, question, options, pick, focus, draft, name });
  }

  function buttonsField(sensor, at, question, draft, may) {
    const id = fieldId(at);
    const options = choices(question, may);
    const now = chosen(options, draft);
    const name = sensor.column_names[at];
    const radios = options.map((_, i) =>
      el("input", { type: "radio", name: id, value: i, checked: i === now })
    );
    const control = el("fieldset", { id }, el("legend", {}, name));
    options.forEach(({ words }, i) =>
      control.append(el("label", { class: "choice" }, radios[i], words))
    );
    const node = el("div", { class: "field" }, control);
    const pick = () => radios.findIndex((radio) => radio.checked);
    const focus = () => radios[Math.max(0, pick())].focus();
    return choiceField({ node, control, id, question, options, pick, focus, draft, name });
  }

  // screens: each returns its sections, what to focus, and what to announce --------------------

  const heading = (text) => el("h2", { tabindex: "-1" }, text);

  function form(fields, submit, ...children) {
    return el(
      "form",
      {
        novalidate: true,
        submit(event) {
          event.preventDefault();
          const values = fields.map((each) => each.value());
          const at = values.findIndex((value) => value === undefined);
          if (at < 0) return submit(values);
          fields[at].focus();
          live.textContent = fields[at].node.querySelector(".error").textContent;
        },
      },
      ...fields.map((each) => each.node),
      ...children
    );
  }

  function pricesScreen() {
    const fields = sensors.varying.map((sensor, i) => {
      const id = fieldId(i);
      const input = el("input", { type: "text", id, inputmode: "decimal", autocomplete: "off" });
      const { hint, error, complain } = describe(input, id);
      const required = sensor.price_column !== null;
      const own = sensors.ownCosts[sensor.index];
      const least = required ? 0 : sensor.surcharge;
      if (!required) hint.textContent = t("own_price", { price: money(own) });
      if (prices[sensor.name] !== undefined && prices[sensor.name] !== null)
        input.value = asTyped(prices[sensor.name]);
      const label = el("label", { for: id }, t("price_of", { sensor: sensor.name }));
      return {
        node: el("div", { class: "field" }, label, hint, input, error),
        focus: () => input.focus(),
        complain,
        value() {
          complain("");
          if (!required && input.value.trim() === "") return null;
          const value = typed(input.value);
          if (typeof value === "number" && value >= least) return value;
          return void complain(
            value === "no_thousands" ? t(value) : t("needs_price", { least: money(least) })
          );
        },
      };
    });
    const take = (values) => {
      prices = Object.fromEntries(sensors.varying.map((s, i) => [s.name, values[i]]));
      replay([]);
      render();
    };
    const go = el("button", { class: "main" }, t("go_on"));
    const section = el(
      "section", {}, heading(t("prices")), el("p", {}, t("prices_differ")),
      form(fields, take, el("div", { class: "buttons" }, go))
    );
    return { parts: [section], focus: fields[0].focus, said: t("prices") };
  }

  function questionScreen(step) {
    const name = editing === null ? step.sensor : editing;
    const sensor = sensors.get(name);
    const before = editing === null ? drafts.get(name) : session.values.get(name);
    const fields = sensor.columns.map((_, at) => field(sensor, at, before && before[at]));
    const take = (values) => {
      const wrong = values.findIndex((value, at) => objection(sensor, at, value) !== "");
      if (wrong >= 0) {
        const message = objection(sensor, wrong, values[wrong]);
        fields[wrong].complain(t("refused", { message }));
        return fields[wrong].focus();
      }
      drafts.set(name, values);
      happen(["tell", name, values, editing !== null]);
      editing = null;
      render();
    };
    const costs = t("costs", {
      price: money(step.cost),
      spent: money(step.spent),
      more: money(step.worst_case_remaining),
    });
    const title =
      editing === null
        ? t("asks", { number: session.log.length + 1, sensor: name })
        : t("correcting", { sensor: name });
    const more = step.sensors.filter((other) => other !== name);
    const likely = step.proba.indexOf(Math.max(...step.proba));
    const about =
      editing === null
        ? [
            el("p", { class: "money" }, costs),
            more.length ? el("p", { class: "hint" }, t("then", { sensors: listed(more) })) : null,
          ]
        : [el("p", { class: "money" }, t("corrects"))];
    const buttons =
      editing === null
        ? [
            el("button", { class: "main" }, t("go_on")),
            button("unavailable", () => {
              happen(["unavailable", name]);
              render();
            }),
            button("stop", () => {
              stopped = true;
              render();
            }),
            session.log.length || sensors.varying.length ? button("back", back) : null,
          ]
        : [el("button", { class: "main" }, t("save")), button("cancel", back)];
    const section = el(
      "section", {}, heading(title), ...about,
      form(fields, take, el("div", { class: "buttons" }, ...buttons.filter((b) => b !== null))),
      editing === null && session.log.length
        ? el(
            "p", { class: "hint" },
            t("likely", { label: said(policy.classes[likely]), chance: chance(step.proba[likely]) })
          )
        : null
    );
    const whole = [title, editing === null ? costs : t("corrects")].join(". ");
    return { parts: [section, aside()], focus: fields.length ? fields[0].focus : null, said: whole };
  }

  function answerScreen() {
    const decision = stopped ? session.soFar() : session.decision();
    const label = said(decision.label);
    const likely = decision.proba[policy.classes.indexOf(decision.label)];
    const target = page.target ? t("answer_of", { target: page.target }) : t("answer");
    const probability = t(decision.referred ? "best_guess" : "probability", {
      label, chance: chance(likely),
    });
    const answer = decision.referred ? t("person") : label;
    const everything = session.spent + decision.saved;
    const because = {
      limit: () => t("because_limit"),
      unavailable: () => t("because_unavailable"),
      "asked to stop": () => t("because_stopped", { sensor: session.step().sensor }),
    }[decision.stopped_because];
    const status = el("p", { role: "status" });
    const section = el(
      "section", {}, heading(target), el("p", { class: "label" }, answer), el("p", {}, probability),
      bars(decision),
      el("p", {}, t("spent", { spent: money(decision.spent), sensors: listed(decision.acquired) })),
      el("p", {}, t("everything", { everything: money(everything), saved: money(decision.saved) })),
      because ? el("p", {}, because()) : null,
      decision.around ? el("p", {}, t("detour", { sensor: decision.around })) : null,
      page.unequal ? el("p", { class: "hint" }, t("losses")) : null,
      el(
        "div", { class: "buttons" },
        button("restart", begin, { class: "main" }),
        session.log.length || stopped || sensors.varying.length ? button("back", back) : null,
        button("print", () => window.print()),
        button("copy", () => copy(decision, status))
      ),
      status,
      el("h3", {}, t("why")), why(),
      el("h3", {}, t("way")), picture(stopped ? session.standing : session, answer)
    );
    const words = `${target}: ${answer}. ${probability}.`;
    return { parts: [section, aside()], focus: () => section.querySelector("h2").focus(), said: words };
  }

  // Every answer with its probability, the likeliest first.
  function bars({ proba }) {
    const order = proba.map((_, i) => i).sort((a, b) => proba[b] - proba[a] || a - b);
    const list = el("ul", { class: "classes" });
    for (const i of order.slice(0, LISTED)) {
      const bar = el("i");
      bar.style.width = `${100 * proba[i]}%`;
      list.append(
        el(
          "li", {}, el("span", {}, said(policy.classes[i])),
          el("span", { class: "bar", "aria-hidden": "true" }, bar),
          el("span", { class: "chance" }, chance(proba[i]))
        )
      );
    }
    const rest = order.slice(LISTED);
    if (rest.length)
      list.append(el("li", {}, t("others", { n: rest.length, chance: chance(proba[rest[0]]) })));
    return list;
  }

  // Choices on the way, in plain words.
  function why() {
    const list = el("ol", { class: "why" });
    const first = policy.places.get(policy.root).sensors;
    const told = first.length ? t("why_start", { sensors: listed(first) }) : t("why_none");
    if (first.length || policy.nNodes === 0) list.append(el("li", {}, told));
    for (const fork of session.explain()) {
      const { reason, heldUp, bought, refers, share, change, useful } = fork;
      const at = policy.label(reason.proba);
      const belief = { label: said(policy.classes[at]), chance: chance(reason.proba[at]) };
      const action = bought.length ? t("buy", { sensors: listed(bought) }) : t(refers ? "refer_there" : "stop_there");
      const lines = [
        t("knowing", { known: listed(fork.known), ...belief }),
        heldUp ? t("held_up", { action }) : t("next", { action }),
      ];
      if (!heldUp && bought.length && change) lines.push(t("changes", { share: counted(change) }));
      if (!heldUp && !bought.length && useful) lines.push(needless(useful));
      if (!heldUp && share !== null) lines.push(t("same_way", { share: chance(share) }));
      if (!heldUp) lines.push(...speaks(reason));
      list.append(el("li", {}, ...lines.map((line) => el("p", {}, line))));
    }
    return list;
  }

  const counted = ({ rows, changed }) =>
    t("of_rows", { share: chance(changed / rows), changed: number(changed), rows: number(rows) });

  // What it would have done to go on, and at what price.
  function needless({ sensors: names, costs, change }) {
    const [low, high] = [Math.min(...costs), Math.max(...costs)];
    const cost = low === high ? money(low) : t("from_to", { low: money(low), high: money(high) });
    return change
      ? t("would_change", { sensors: listed(names), share: counted(change), cost })
      : t("would_cost", { sensors: listed(names), cost });
  }

  // What spoke for a decision, and what against it, the weightiest first.
  function speaks({ score, influences }) {
    const sign = score > 0 ? 1 : -1;
    const least = Math.max(SMALL * Math.abs(influences.length ? influences[0].contribution : 0), 1e-12);
    const told = influences.filter((i) => Math.abs(i.contribution) >= least);
    const pro = told.filter((i) => sign * i.contribution > 0).slice(0, FOR);
    const contra = told.filter((i) => sign * i.contribution < 0).slice(0, AGAINST);
    const words = (list) => list.map(influence).join("; ");
    const lines = [t("spoke_for", { list: words(pro) || t("usual") })];
    if (contra.length) lines.push(t("spoke_against", { list: words(contra) }));
    return lines;
  }

  function influence({ about, things, name, value }) {
    if (about === "probability") return t("the_probability");
    const is = (what, v) =>
      v === null ? t("is_missing", { name: what }) : t("is", { name: what, value: shownIn(what, v) });
    if (things.length) return things.map((thing) => is(thing.column, thing.value)).join(" + ");
    const price = /^price of (.*)$/.exec(name);
    return is(price ? t("price_of", { sensor: price[1] }) : name, value);
  }

  function picture({ tree, place: end }, answer = null) {
    const words = ({ place, parent, folded }, isEnd) => {
      const known = parent ? parent.place.sensors : [];
      const bought = place.sensors.filter((name) => !known.includes(name));
      const price = session._price(place.path) - (parent ? session._price(parent.place.path) : 0);
      let text = bought.length ? t("buy", { sensors: listed(bought) }) : parent ? t(place.refers ? "refer_there" : "stop_there") : t("start");
      if (bought.length && price > 1e-9 && !session.values.has(bought[0])) text += ` (${money(price)})`;
      if (folded) text += ` … ${t("ends", { n: place.leaves.length })}`;
      if (isEnd) text += ` → ${answer === null ? t("here") : answer}`;
      return text;
    };
    const label = t("way_said", { n: tree.nLeaves });
    return el(
      "figure", { class: "scroll", tabindex: "0", "aria-label": t("way") },
      draw(tree, end, words, label), el("figcaption", { class: "hint" }, label)
    );
  }

  function aside() {
    const list = el("ul", { class: "told" });
    for (const [name, values] of session.values) {
      const { column_names: columns } = sensors.get(name);
      const words = values.map((v, i) => `${columns[i]}: ${shownIn(columns[i], v)}`).join("; ");
      const cost = paid.has(name) ? money(paid.get(name)) : t("free");
      const correct = () => {
        editing = name;
        stopped = false;
        render();
      };
      const of = { "aria-label": t("correct_of", { sensor: name }), class: "small" };
      list.append(
        el(
          "li", {}, el("div", {}, el("strong", {}, name), ` (${cost})`, el("div", {}, words)),
          button("correct", correct, of)
        )
      );
    }
    for (const name of session.lost) {
      const of = { "aria-label": t("ask_again_of", { sensor: name }), class: "small" };
      const words = el("div", {}, el("strong", {}, name), `: ${t("was_unavailable")}`);
      list.append(el("li", {}, words, button("ask_again", () => askAgain(name), of)));
    }
    const made = el("aside", { "aria-label": t("answers") }, el("h3", {}, t("answers")));
    made.querySelector("h3").style.marginTop = 0;
    made.append(list.children.length ? list : el("p", {}, t("nothing")));
    if (!stopped && session.ask() !== null && editing === null)
      made.append(el("details", {}, el("summary", {}, t("way_now")), picture(session)));
    return made;
  }

  // what leaves the page only by the person's hand ----------------------------------------------

  function record(decision) {
    const proba = policy.classes.map((label, i) => [said(label), decision.proba[i]]);
    return {
      decision: { ...decision, proba: Object.fromEntries(proba) },
      session: session.toDict(),
    };
  }

  async function copy(decision, status) {
    const text = JSON.stringify(record(decision), null, 1);
    try {
      await navigator.clipboard.writeText(text);
      status.textContent = t("copied");
    } catch {
      const area = el("textarea", { readonly: true, "aria-label": t("copy") });
      area.value = text;
      status.textContent = t("copy_yourself");
      status.after(area);
      area.select();
    }
  }

  // all together --------------------------------------------------------------------------------

  function frame() {
    document.documentElement.lang = language;
    const title = page.title || page.target || t("title");
    document.title = title;
    header.replaceChildren(el("h1", {}, title), el("p", { class: "private" }, t("private")));
    const options = Object.keys(page.texts).map((tag) =>
      el("option", { value: tag, selected: tag === language, lang: tag }, page.texts[tag].language)
    );
    const choose = el("select", {
      "aria-label": "Language",
      change(event) {
        language = event.target.value;
        render();
      },
    });
    choose.append(...options);
    footer.replaceChildren(
      el("label", {}, choose), el("span", {}, t("model", { digest: policy.fingerprint.slice(0, 12) }))
    );
  }

  function render() {
    frame();
    const step = session && session.ask();
    const screen =
      session === null
        ? pricesScreen()
        : editing !== null
          ? questionScreen(session.step())
          : stopped || step === null
            ? answerScreen()
            : questionScreen(step);
    main.classList.toggle("two", screen.parts.length > 1);
    main.replaceChildren(...screen.parts);
    live.textContent = screen.said;
    if (screen.focus) screen.focus();
    else main.querySelector("h2").focus();
    window.scrollTo(0, 0);
  }

  document.body.append(header, main, footer, live);
  begin();
  window.sensortree = { policy };
})();
