// Rows of the table of flows, which are searched, filtered and sorted beside the analyzer: there may be ten thousand.
"use strict";

class Rows {
  // `table`: as `Table::to_json` of thinair-report. Its second column is the protocol, with that of its payload behind a slash.
  constructor({ columns, rows, totals }) {
    const isNumber = ({ key }) => rows.some((row) => typeof row[key] === "number");
    this.columns = columns.map((column) => ({ ...column, isNumber: isNumber(column) }));
    this.rows = rows;
    this.totals = totals;
    this.protocol = (row) => row[columns[1].key].split(" / ")[0];
    this.words = rows.map((row) => columns.map(({ key }) => row[key] ?? "").join(" ").toLowerCase());
  }

  // Returns all but the rows.
  head() {
    const protocols = [...new Set(this.rows.map(this.protocol))].sort();
    return { columns: this.columns, totals: this.totals, protocols, all: this.rows.length };
  }

  // Returns `count` rows from number `from` on of those that have all words of `search` and are of `protocol`, in the order of the
  // column with the key `sorted`, 1 or -1, and how many there are.
  find({ search = "", protocol = "", sorted = null, order = 1, from = 0, count }) {
    const words = search.toLowerCase().split(/\s+/).filter((word) => word !== "");
    const found = this.rows.filter((row, number) => words.every((word) => this.words[number].includes(word))
      && (protocol === "" || this.protocol(row) === protocol));
    if (sorted !== null) {
      const collator = new Intl.Collator(undefined, { numeric: true });
      found.sort(({ [sorted]: x }, { [sorted]: y }) => {
        if (x === null || y === null) return (x === null) - (y === null);
        return order * (typeof x === "number" ? x - y : collator.compare(x, y));
      });
    }
    return { rows: found.slice(from, from + count), from, found: found.length };
  }
}
