"use strict";
// Draws scatters and maps on canvases, at the step that the slider selects. Data from runs is never used as markup.
// The data is written by slider.py. One entry of data.sliders per task:
//   steps: steps at which the slider can stop
//   panels: one per setting
//     estimates_counts: whether the bonus estimates 1 / sqrt(N); the scatter then has a dashed line
//     top: top of the bonus scale; unit: bonus per integer in frame.bonus
//     most_visits: top of the visit scale; grid: [columns, rows] of the map, or null
//     frames: one per count table: step, caption, and per state: counts, bonus, cells (row * columns + column)
// data.viridis and data.magma are colour maps.
const data = JSON.parse(document.getElementById("sliders").textContent);

function colours() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue("--" + name).trim();
  return { ink: read("ink"), quiet: read("quiet"), line: read("line"), point: read("point"), unseen: read("unseen") };
}

function shade(palette, fraction) {
  const place = Math.max(0, Math.min(palette.length - 1, Math.round(fraction * (palette.length - 1))));
  return palette[place];
}

function clear(canvas) {
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.font = "22px system-ui, sans-serif";
  return context;
}

function scatter(canvas, panel, frame) {
  const context = clear(canvas), look = colours(), left = 96, bottom = 60, top = 14, right = 14;
  const width = canvas.width - left - right, height = canvas.height - top - bottom;
  const x = (value) => left + width * value / 1.03, y = (value) => top + height * (1 - value / (1.05 * panel.top));
  context.strokeStyle = look.line;
  context.fillStyle = look.quiet;
  context.lineWidth = 2;
  context.textAlign = "center";
  const ticks = panel.estimates_counts && panel.top < 2 ? [0, 0.5, 1] : [0, panel.top / 2, panel.top];
  for (const tick of [0, 0.5, 1]) {
    context.beginPath(); context.moveTo(x(tick), top); context.lineTo(x(tick), top + height); context.stroke();
    context.fillText(String(tick), x(tick), top + height + 26);
  }
  for (const tick of ticks) {
    context.beginPath(); context.moveTo(left, y(tick)); context.lineTo(left + width, y(tick)); context.stroke();
  }
  context.textAlign = "right";
  for (const tick of ticks) context.fillText(String(Number(tick.toPrecision(2))), left - 8, y(tick) + 7);
  context.textAlign = "center";
  context.fillText("true bonus", left + width / 2, canvas.height - 8);
  context.save(); context.translate(20, top + height / 2); context.rotate(-Math.PI / 2);
  context.fillText("predicted bonus", 0, 0); context.restore();
  context.save(); context.beginPath(); context.rect(left, top - 4, width + 8, height + 8); context.clip();
  if (panel.estimates_counts) {
    context.strokeStyle = look.ink;
    context.setLineDash([10, 8]);
    context.beginPath(); context.moveTo(x(0), y(0)); context.lineTo(x(1), y(1)); context.stroke();
    context.setLineDash([]);
  }
  context.fillStyle = look.point;
  context.globalAlpha = 0.45;
  for (let i = 0; i < frame.counts.length; i++) {
    context.beginPath();
    context.arc(x(1 / Math.sqrt(frame.counts[i])), y(Math.min(panel.top, frame.bonus[i] * panel.unit)), 4.5, 0, 7);
    context.fill();
  }
  context.globalAlpha = 1;
  context.restore();
}

function map(canvas, panel, frame, palette, fraction, ends) {
  const context = clear(canvas), look = colours(), [columns, rows] = panel.grid, bar = 64;
  const cell = Math.min(canvas.width / columns, (canvas.height - bar) / rows);
  context.fillStyle = look.unseen;
  context.fillRect(0, 0, cell * columns, cell * rows);
  for (let i = 0; i < frame.cells.length; i++) {
    const column = frame.cells[i] % columns, row = Math.floor(frame.cells[i] / columns);
    context.fillStyle = shade(palette, fraction(i));
    context.fillRect(column * cell, (rows - 1 - row) * cell, cell + 0.6, cell + 0.6);
  }
  const y = canvas.height - 50, width = canvas.width - 4;
  for (let i = 0; i < 64; i++) {
    context.fillStyle = shade(palette, i / 63);
    context.fillRect(2 + i * width / 64, y, width / 64 + 1, 14);
  }
  context.fillStyle = look.quiet;
  context.textAlign = "left";
  context.fillText(ends[0], 2, y + 40);
  context.textAlign = "right";
  context.fillText(ends[2], canvas.width - 2, y + 40);
  context.textAlign = "center";
  context.fillText(ends[1], canvas.width / 2, y + 40);
}

function show(slider, element, position) {
  const step = slider.steps[position];
  element.querySelector("output").textContent = "step " + step.toLocaleString("en");
  element.querySelectorAll("figure").forEach((figure) => {
    const panel = slider.panels[Number(figure.dataset.panel)];
    let frame = panel.frames[0];
    for (const one of panel.frames) if (one.step <= step) frame = one;  // frames are sorted: the newest one counts
    figure.querySelector(".state").textContent = " " + frame.caption;
    const most = Math.log(Math.max(2, panel.most_visits));
    const draw = {
      scatter: (canvas) => scatter(canvas, panel, frame),
      visits: (canvas) => map(canvas, panel, frame, data.viridis, (i) => Math.log(frame.counts[i]) / most, ["1", "visits (log)", panel.most_visits.toLocaleString("en")]),
      bonus: (canvas) => map(canvas, panel, frame, data.magma, (i) => frame.bonus[i] * panel.unit / panel.top, ["0", "bonus", String(Number(panel.top.toPrecision(2)))]),
    };
    figure.querySelectorAll("canvas").forEach((canvas) => draw[canvas.dataset.kind](canvas));
  });
}

document.querySelectorAll(".slider").forEach((element) => {
  const slider = data.sliders[Number(element.dataset.slider)], input = element.querySelector("input");
  const redraw = () => show(slider, element, Number(input.value));
  input.addEventListener("input", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  redraw();
});
