"""Draws the picture in deploying.md: ``python docs/page_images.py``; needs Chromium.

The page is that of the heart patients of `sensortree.demo`: a question and an answer on a
phone, side by side, on a page that holds nothing but them.
"""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from chromium import Chromium, find_chromium  # noqa: E402 - once the path is set

from sensortree import demo, to_page  # noqa: E402 - the same

WIDTH, HEIGHT = 390, 844
PATIENT = {
    "history_exam": {"age": "54", "sex": "1", "cp": "4", "trestbps": "140"},
    "blood": {"chol": "240", "fbs": "0"},
    "resting_ecg": {"restecg": "0"},
}
FILL = """
for (const [column, value] of Object.entries(%s)) {
  const label = [...document.querySelectorAll("label[for], legend")]
    .find((e) => e.textContent === column);
  const field = label.closest(".field");
  const radio = [...field.querySelectorAll("label.choice")]
    .find((e) => e.textContent === value);
  if (radio) radio.querySelector("input").click();
  else field.querySelector("input").value = value;
}
"""


def main() -> None:
    """Write docs/images/page.png."""
    path = find_chromium()
    if path is None:
        raise SystemExit("Chromium is not installed; `make browser` installs it.")
    X, y = demo.load_patients()
    model = demo.tree_classifier(4000).fit(X, y)
    with tempfile.TemporaryDirectory() as folder, Chromium(path) as browser:
        page = Path(folder) / "page.html"
        page.write_text(to_page(model, title="Heart disease?"), encoding="utf-8")
        browser.open(page)
        browser.look(WIDTH, HEIGHT, dark=False)
        browser.run(FILL % PATIENT["history_exam"])
        shots = [browser.screenshot()]
        browser.click_button("Go on")
        for sensor in ("blood", "resting_ecg"):
            browser.run(FILL % PATIENT[sensor])
            browser.click_button("Go on")
        browser.click_button("Stop here")
        browser.look(WIDTH, HEIGHT, dark=True)
        shots.append(browser.screenshot())
        sheet = Path(folder) / "sheet.html"
        images = "".join(
            f'<img width="{WIDTH}" src="data:image/png;base64,'
            f'{base64.b64encode(shot).decode()}">'
            for shot in shots
        )
        sheet.write_text(
            "<style>body{margin:0;display:flex;gap:12px;width:max-content;"
            f"align-items:start;background:#888}}</style>{images}"
        )
        browser.open(sheet)
        browser.look(2 * WIDTH + 12, HEIGHT, dark=False)
        (ROOT / "docs" / "images" / "page.png").write_bytes(browser.screenshot())


if __name__ == "__main__":
    main()
