// The way through the tree as a picture: an outline from top to bottom, one line for each
// vertex, nodes that know the same together. What is not on the way is pale, and folded in a
// large tree. Colours are those of display/colours.py, by the classes of page.css.
const SensorTreePicture = (function () {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const LINE = 26;
  const INDENT = 20;
  const LETTER = 8; // width of a letter, nearly
  const LONGEST = 44; // letters of a line
  const WHOLE = 12; // ends of a tree that is drawn whole
  const [THINNEST, THICKEST] = [1, 7];

  function element(name, attributes, ...children) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  // Places from the root to one of them.
  function wayTo(tree, end) {
    const holds = (p) => end.leaves.length && end.leaves.every((leaf) => p.leaves.includes(leaf));
    return new Set([...tree.places.values()].filter(holds).map((p) => p.number));
  }

  // Lines of the picture, depth first, each with its vertex, its depth and its parent.
  function outline(tree, way) {
    const lines = [];
    const fold = tree.nLeaves > WHOLE;
    const add = (place, depth, parent) => {
      const on = way.has(place.number);
      const folded = fold && !on && place.leaves.length > 1;
      const line = { place, depth, parent, on, folded };
      lines.push(line);
      if (place.decision && !folded)
        for (const { end } of tree.ways(place)) add(end, depth + 1, line);
    };
    add(tree.places.get(tree.root), 0, null);
    return lines;
  }

  // `words` says what stands at a line, given also whether the way ends there; `label`
  // describes the picture.
  function draw(tree, stop, words, label) {
    const end = stop.decision ? tree.forkOf(stop) : stop;
    const lines = outline(tree, wayTo(tree, end));
    const rows = (place) => tree.rows(place);
    const all = rows(lines[0].place) || 1;
    lines.forEach((line, i) => {
      line.x = 12 + line.depth * INDENT;
      line.y = (i + 0.5) * LINE;
    });
    const parts = [];
    for (const { place, parent, on, x, y } of lines.slice().sort((a, b) => a.on - b.on)) {
      if (!parent) continue;
      const width = THINNEST + ((THICKEST - THINNEST) * rows(place)) / all;
      const d = `M${parent.x} ${parent.y}V${y}H${x}`;
      parts.push(element("path", { d, class: on ? "on" : "off", "stroke-width": on ? Math.max(width, 3) : width }));
    }
    let widest = 0;
    for (const line of lines) {
      const { place, on, x, y } = line;
      const kind = place.decision && !line.folded ? "rect" : "circle";
      const shape = kind === "rect" ? { x: x - 5, y: y - 5, width: 10, height: 10, rx: 2 } : { cx: x, cy: y, r: 5 };
      parts.push(element(kind, { ...shape, class: on ? "on" : "off" }));
      const text = words(line, place === end);
      const shown = text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
      widest = Math.max(widest, x + 12 + shown.length * LETTER);
      parts.push(element("text", { x: x + 12, y: y + 4.5, class: on ? "on" : "off" }, element("title", {}, text), shown));
    }
    const [width, height] = [Math.ceil(widest), lines.length * LINE];
    return element(
      "svg",
      { class: "tree", role: "img", "aria-label": label, width, height, viewBox: `0 0 ${width} ${height}` },
      ...parts
    );
  }

  return { draw };
})();
