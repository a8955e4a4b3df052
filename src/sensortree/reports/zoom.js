// Moves the part of the picture that is seen, and nothing else; without it the picture is the
// same. No less-than sign or ampersand may stand in it, since XML would read them. NAME is the
// class of the picture. What stands above the first empty line is left out.

for (const svg of document.querySelectorAll("svg.NAME:not([data-zooms])")) {
  svg.dataset.zooms = "";
  const seen = svg.viewBox.baseVal, {width, height} = seen;
  const at = (e) =>
    new DOMPoint(e.clientX, e.clientY).matrixTransform(svg.getScreenCTM().inverse());
  const between = (low, value, high) => Math.min(Math.max(low, value), high);
  const look = (x, y, part) => {
    seen.width = width * part;
    seen.height = height * part;
    seen.x = between(0, x, width - seen.width);
    seen.y = between(0, y, height - seen.height);
    svg.style.cursor = part === 1 ? "" : "grab";
  };
  const zoom = (e, times) => {
    const p = at(e), part = between(1 / 16, times * seen.width / width, 1);
    const scale = part * width / seen.width;
    look(p.x - scale * (p.x - seen.x), p.y - scale * (p.y - seen.y), part);
  };
  let held = null;
  svg.addEventListener("wheel", (e) => {
    if (!(e.ctrlKey || e.metaKey || document.documentElement === svg)) return;
    e.preventDefault();
    zoom(e, 1.002 ** e.deltaY);
  }, {passive: false});
  svg.addEventListener("dblclick", (e) => zoom(e, seen.width === width ? 1 / 3 : 16));
  svg.addEventListener("pointerdown", (e) => {
    if (e.pointerType === "touch" || seen.width === width) return;
    e.preventDefault();
    svg.setPointerCapture(e.pointerId);
    held = at(e);
  });
  svg.addEventListener("pointermove", (e) => {
    if (held === null) return;
    const p = at(e);
    look(seen.x + held.x - p.x, seen.y + held.y - p.y, seen.width / width);
  });
  svg.addEventListener("lostpointercapture", () => { held = null; });
}
