// A readout under the pointer; the page is whole without it.
for (const data of document.querySelectorAll("figure > script")) {
  const plot = data.previousElementSibling, svg = plot.querySelector("svg");
  let told = null;
  const line = plot.appendChild(document.createElement("div"));
  const box = plot.appendChild(document.createElement("div"));
  line.className = "pointer";
  box.className = "readout";
  line.hidden = box.hidden = true;
  svg.addEventListener("pointerleave", () => { line.hidden = box.hidden = true; });
  svg.addEventListener("pointermove", (event) => {
    told ??= JSON.parse(data.textContent);
    const area = svg.getBoundingClientRect();
    const at = (event.clientX - area.left) / area.width * 1000;
    let low = 0, high = told.x.length - 1;
    while (low < high) { const middle = (low + high) >> 1; if (told.x[middle] < at) low = middle + 1; else high = middle; }
    if (low > 0 && at - told.x[low - 1] < told.x[low] - at) low -= 1;
    const share = told.x[low] / 1000;
    line.hidden = box.hidden = false;
    line.style.left = box.style.left = `${share * 100}%`;
    box.classList.toggle("leftward", share > 0.6);
    box.replaceChildren();
    const head = box.appendChild(document.createElement("b"));
    head.textContent = told.told[low];
    for (const [name, values] of told.curves) {
      if (values[low] === undefined || values[low] === "–") continue;
      const row = box.appendChild(document.createElement("div"));
      row.appendChild(document.createElement("span")).textContent = name;
      row.appendChild(document.createElement("span")).textContent = values[low];
    }
  });
}
