// Lets a reader sort tables and hide series of plots below `root`. Without this script they stay as they are.
function enliven(root) {
  // Tables sort by a column when its heading is pressed.
  for (const table of root.querySelectorAll("table")) {
    const body = table.tBodies[0];
    if (body.rows.length < 3) continue;
    [...table.tHead.rows[0].cells].forEach((head, at) => {
      if (head.textContent === "") return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      const number = head.classList.contains("n");
      const key = (row) => {
        const cell = row.cells[at];
        if (!number) return cell.textContent;
        return cell.dataset.v === undefined ? null : Number(cell.dataset.v);
      };
      button.addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        const order = before === "descending" || (before === null && !number) ? "ascending" : "descending";
        const sign = order === "ascending" ? 1 : -1;
        for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", order);
        const compare = (a, b) => {
          const [x, y] = [key(a), key(b)];
          if (x === null || y === null) return (x === null) - (y === null);
          return sign * (number ? x - y : x.localeCompare(y, undefined, { numeric: true }));
        };
        body.append(...[...body.rows].sort(compare));
      });
    });
  }

  // A series of a plot is hidden, and shown again, when its entry in the legend is pressed.
  for (const figure of root.querySelectorAll("figure.drawing")) {
    for (const key of figure.querySelectorAll("g.key")) {
      // An image has nothing that can be pressed.
      key.closest("svg").setAttribute("role", "group");
      const same = figure.querySelectorAll(`[data-series="${key.dataset.series}"]`);
      key.setAttribute("role", "button");
      key.setAttribute("tabindex", "0");
      key.setAttribute("aria-pressed", "true");
      const toggle = () => {
        const shown = key.getAttribute("aria-pressed") !== "true";
        for (const part of same) {
          part.classList.toggle("hidden", !shown);
          if (part.classList.contains("key")) part.setAttribute("aria-pressed", shown);
        }
      };
      key.addEventListener("click", toggle);
      key.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        toggle();
      });
    }
  }
}
