// What is drawn on the map: lines, circles, numbered answers, the cross of an estimate. `pen` is a canvas context.

// 1, 2 or 5 times a power of ten, near to a wanted step.
export function niceStep(about) {
  const power = 10 ** Math.floor(Math.log10(about));
  return power * ([1, 2, 5].find((times) => times * power >= about * 0.7) ?? 10);
}

export function line(pen, x0, y0, x1, y1) {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}

// Text; `halo` is the colour around it, where it stands on a picture.
export function written(pen, words, x, y, halo = null) {
  if (halo) {
    Object.assign(pen, { lineWidth: 4, lineJoin: "round", strokeStyle: halo });
    pen.strokeText(words, x, y);
  }
  pen.fillText(words, x, y);
}

export function ring(pen, [x, y], radius, colour, dash) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 7);
  pen.globalAlpha = 0.12;
  pen.fillStyle = colour;
  pen.fill();
  pen.globalAlpha = 1;
  pen.strokeStyle = colour;
  pen.lineWidth = 2;
  pen.setLineDash(dash);
  pen.stroke();
  pen.setLineDash([]);
}

export function label(pen, [x, y], mark, colour) {
  pen.beginPath();
  pen.arc(x, y, 11, 0, 7);
  pen.fillStyle = mark.likely ? colour("accent") : colour("ground");
  pen.fill();
  pen.strokeStyle = mark.likely ? colour("ground") : colour("quiet");
  pen.lineWidth = 2;
  pen.stroke();
  pen.fillStyle = mark.likely ? colour("on-accent") : colour("ink");
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText(mark.label, x, y + 0.5);
  pen.textAlign = "left";
  pen.textBaseline = "alphabetic";
}

export function cross(pen, [x, y], colour) {
  pen.strokeStyle = colour("accent");
  pen.lineWidth = 2.5;
  line(pen, x - 8, y, x + 8, y);
  line(pen, x, y - 8, x, y + 8);
}
