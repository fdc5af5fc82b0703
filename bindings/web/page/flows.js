// The table of all flows: sorted, searched and filtered, with so many rows as are read.
"use strict";

// Rows that are shown at first, and with each press of the button.
const ROWS = 100;

// Returns the table as a figure of the report, and a function that shows answers. `table`: `head` of `Rows`; `ask` passes questions to
// its `find`, and what it returns comes to `show`, with the number of the question.
function flowTable({ columns, totals, protocols, all }, ask) {
  const number = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, "\u202f");
  const text = (column, value) => {
    if (value === null || value === undefined) return "";
    if (typeof value !== "number") return value.replaceAll("->", "→");
    const [whole, part] = (column.unit === "B" ? value.toFixed(1) : String(value)).split(".");
    return number(whole) + (part === undefined ? "" : `.${part}`);
  };
  const label = ({ heading, unit }) => unit ? `${heading} (${unit})` : heading;
  const kind = ({ isNumber }) => isNumber ? "n" : undefined;

  const search = element("input", { type: "search", id: "flow-search", placeholder: "address, port, profile", autocomplete: "off", spellcheck: "false" });
  const select = element("select", { id: "flow-protocol" }, element("option", { value: "" }, "all"), ...protocols.map((name) => element("option", {}, name)));
  const count = element("p", { class: "count", role: "status" });
  const body = element("tbody");
  const more = element("button", { type: "button", onclick: () => find(body.rows.length) }, "");
  let [sorted, order, asked] = [null, 1, 0];

  const heads = columns.map((column) => {
    const head = element("th", { scope: "col", class: kind(column) });
    head.append(element("button", { type: "button", onclick: () => {
      order = sorted === column.key ? -order : column.isNumber ? -1 : 1;
      sorted = column.key;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", order > 0 ? "ascending" : "descending");
      find(0);
    } }, label(column)));
    return head;
  });

  const [flow] = columns;
  const line = (row) => element("tr", {}, ...columns.map((column) => {
    const shown = text(column, row[column.key]);
    return column === flow ? element("th", { scope: "row" }, shown) : element("td", { class: kind(column), "data-h": label(column) }, shown);
  }));

  const find = (from) => ask({ number: asked += 1, search: search.value, protocol: select.value, sorted, order, from, count: ROWS });
  const show = (answer) => {
    // What was asked since then is still to be answered.
    if (answer.number !== asked) return;
    if (answer.from === 0) body.replaceChildren();
    body.append(...answer.rows.map(line));
    const [shown, { found }] = [body.rows.length, answer];
    count.textContent = found === all ? `${number(shown)} of ${number(all)} flows` : `${number(shown)} of ${number(found)} flows found among ${number(all)}`;
    more.hidden = shown === found;
    more.textContent = `Show ${Math.min(ROWS, found - shown)} more`;
  };
  search.addEventListener("input", () => find(0));
  select.addEventListener("change", () => find(0));
  find(0);

  const table = element("table", { class: columns.length > 9 ? "cards dense" : "cards" }, element("thead", {}, element("tr", {}, ...heads)), body);
  if (totals.length > 0) table.append(element("tfoot", {}, ...totals.map(line)));
  const figure = element("figure", { class: "table long", id: "flows" },
    element("div", { class: "search" },
      element("p", { class: "field" }, element("label", { for: "flow-search" }, "Search"), search),
      element("p", { class: "field" }, element("label", { for: "flow-protocol" }, "Protocol"), select),
      count),
    element("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Flows" }, table), more);
  return { figure, show };
}
