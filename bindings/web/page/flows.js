// The table of all flows: sorted, searched and filtered, with so many rows as are read.
"use strict";

// Rows that are shown at first, and with each press of the button.
const ROWS = 100;

// Returns the table as a figure of the report. `table`: as `Table::to_json` of thinair-report.
function flowTable({ columns, rows, totals }) {
  const number = (column) => rows.some((row) => typeof row[column.key] === "number");
  const kinds = new Map(columns.map((column) => [column.key, number(column)]));
  const text = (column, value) => {
    if (value === null || value === undefined) return "";
    if (typeof value !== "number") return value.replaceAll("->", "→");
    const [whole, part] = (column.unit === "B" ? value.toFixed(1) : String(value)).split(".");
    return whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") + (part === undefined ? "" : `.${part}`);
  };
  for (const row of rows) row.words = columns.map((column) => row[column.key] ?? "").join(" ").toLowerCase();
  const [flow, protocol] = columns;
  const protocols = [...new Set(rows.map((row) => row[protocol.key].split(" / ")[0]))].sort();

  const search = element("input", { type: "search", id: "flow-search", placeholder: "address, port, profile", autocomplete: "off", spellcheck: "false" });
  const select = element("select", { id: "flow-protocol" }, element("option", { value: "" }, "all"), ...protocols.map((name) => element("option", {}, name)));
  const count = element("p", { class: "count", role: "status" });
  const body = element("tbody");
  const more = element("button", { type: "button" });
  let [sorted, order, most] = [null, 1, ROWS];

  const heads = columns.map((column) => {
    const label = column.unit ? `${column.heading} (${column.unit})` : column.heading;
    const head = element("th", { scope: "col", class: kinds.get(column.key) ? "n" : undefined });
    head.append(element("button", { type: "button", onclick: () => {
      order = sorted === column ? -order : kinds.get(column.key) ? -1 : 1;
      sorted = column;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", order > 0 ? "ascending" : "descending");
      show();
    } }, label));
    return head;
  });

  const collator = new Intl.Collator(undefined, { numeric: true });
  const compare = (a, b) => {
    const [x, y] = [a[sorted.key], b[sorted.key]];
    if (x === null || y === null) return (x === null) - (y === null);
    return order * (typeof x === "number" ? x - y : collator.compare(x, y));
  };
  const line = (row) => element("tr", {}, ...columns.map((column) => {
    if (column === flow) return element("th", { scope: "row" }, text(column, row[column.key]));
    const label = column.unit ? `${column.heading} (${column.unit})` : column.heading;
    return element("td", { class: kinds.get(column.key) ? "n" : undefined, "data-h": label }, text(column, row[column.key]));
  }));

  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
    let found = rows.filter((row) => words.every((word) => row.words.includes(word))
      && (select.value === "" || row[protocol.key].split(" / ")[0] === select.value));
    if (sorted !== null) found = [...found].sort(compare);
    const shown = found.slice(0, most);
    body.replaceChildren(...shown.map(line));
    const all = text({}, rows.length);
    count.textContent = found.length === rows.length ? `${text({}, shown.length)} of ${all} flows` : `${text({}, shown.length)} of ${text({}, found.length)} flows found among ${all}`;
    more.hidden = shown.length === found.length;
    more.textContent = `Show ${Math.min(ROWS, found.length - shown.length)} more`;
  };
  const again = () => { most = ROWS; show(); };
  search.addEventListener("input", again);
  select.addEventListener("change", again);
  more.addEventListener("click", () => { most += ROWS; show(); });
  show();

  const table = element("table", { class: columns.length > 9 ? "cards dense" : "cards" }, element("thead", {}, element("tr", {}, ...heads)), body);
  if (totals.length > 0) table.append(element("tfoot", {}, ...totals.map(line)));
  return element("figure", { class: "table long", id: "flows" },
    element("div", { class: "search" },
      element("p", { class: "field" }, element("label", { for: "flow-search" }, "Search"), search),
      element("p", { class: "field" }, element("label", { for: "flow-protocol" }, "Protocol"), select),
      count),
    element("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Flows" }, table), more);
}
