//! Message sequence charts, as text and as SVG.

use maud::{Markup, PreEscaped, html};

use crate::plot::STYLE;
use crate::plot::canvas::{Canvas, line, px};
use crate::terminal::Style;
use crate::text::{printable, truncated, width};

/// A message: an arrow between two lanes.
#[derive(Clone, Debug, PartialEq)]
pub struct SequenceMessage {
    /// Time, formatted by the caller; a part equal to that of the line before is omitted.
    pub time: String,
    /// Lane at which it starts, from 0.
    pub from: usize,
    /// Lane at which it ends, from 0.
    pub to: usize,
    /// Text on the arrow.
    pub label: String,
    /// Text beside the arrow.
    pub note: String,
}

/// A chart of messages between lanes, from top to bottom.
///
/// ```
/// use thinair_report::{SequenceMessage, Sequence, Style};
///
/// let mut chart = Sequence::new("A ping", "ms", ["a", "b"]);
/// let message = |time: &str, from, to, label: &str| SequenceMessage {
///     time: time.to_owned(), from, to, label: label.to_owned(), note: String::new(),
/// };
/// chart.message(message("0.000", 0, 1, "Echo Request"));
/// chart.message(message("75.2", 1, 0, "Echo Reply"));
/// let text = chart.to_text(&Style::plain(44));
/// assert!(text.contains("0.000  |- Echo Request -->|"), "{text}");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    title: String,
    /// Heading of the times.
    unit: String,
    lanes: Vec<String>,
    messages: Vec<SequenceMessage>,
}

/// Minimum distance between two lanes of text, in columns.
const LEAST: usize = 16;

/// Columns of an arrow beside its label: two of line and one blank at its start, and the same and the head at
/// its end.
const AROUND: usize = 7;

/// Distance between two messages in pixels.
const STEP: f64 = 30.0;

impl Sequence {
    /// Returns a chart without messages.
    pub fn new<T: Into<String>>(
        title: impl Into<String>,
        unit: impl Into<String>,
        lanes: impl IntoIterator<Item = T>,
    ) -> Self {
        let lanes = lanes.into_iter().map(Into::into).collect();
        Self { title: title.into(), unit: unit.into(), lanes, messages: Vec::new() }
    }

    /// Appends a message. Ignores a message with an unknown lane.
    pub fn message(&mut self, message: SequenceMessage) {
        if message.from.max(message.to) < self.lanes.len() && message.from != message.to {
            self.messages.push(message);
        }
    }

    /// Returns the chart as text, as wide as the style demands, or as its lanes need.
    pub fn to_text(&self, style: &Style) -> String {
        let lanes = self.lanes.len().max(1);
        let widest = |texts: &mut dyn Iterator<Item = &str>| texts.map(width).max().unwrap_or_default();
        let times = widest(
            &mut self.messages.iter().map(|message| message.time.as_str()).chain([self.unit.as_str()]),
        );
        let notes = widest(&mut self.messages.iter().map(|message| message.note.as_str()));
        let labels = widest(&mut self.messages.iter().map(|message| message.label.as_str())) + AROUND;
        let left = times + 2;
        let room = style.width.saturating_sub(left + if notes > 0 { notes + 2 } else { 0 } + 1);
        let gap = (room / lanes.saturating_sub(1).max(1)).clamp(LEAST, labels.max(LEAST));
        let end = gap * (lanes - 1);

        let mut out = String::new();
        if !self.title.is_empty() {
            out += &format!("{}\n\n", style.bold(&printable(&self.title)));
        }
        out += &self.heading(left, gap, end);
        let mut before = "";
        for message in &self.messages {
            let time = if message.time == before { "" } else { &message.time };
            before = &message.time;
            let blank = " ".repeat(times.saturating_sub(width(time)));
            let row = row(message, lanes, gap);
            out += format!("{blank}{time}  {row}  {}", printable(&message.note)).trim_end();
            out.push('\n');
        }
        out
    }

    /// Returns the names of the lanes: each centered above its lane, the first and the last within the chart.
    fn heading(&self, left: usize, gap: usize, end: usize) -> String {
        let mut line = printable(&self.unit).into_owned();
        for (number, name) in self.lanes.iter().enumerate() {
            // Neighboring names share the room between their lanes.
            let name = truncated(&printable(name), gap.saturating_sub(2)).into_owned();
            let middle = left + number * gap;
            let most = left + end + 1;
            let start =
                middle.saturating_sub(width(&name) / 2).min(most.saturating_sub(width(&name)).max(left));
            let start = start.max(if number == 0 { left } else { width(&line) + 1 });
            line += &" ".repeat(start.saturating_sub(width(&line)));
            line += &name;
        }
        line.trim_end().to_owned() + "\n"
    }

    /// Returns the chart as a self-contained SVG file.
    pub fn to_svg(&self) -> String {
        let canvas = Canvas::WIDE;
        let lanes = self.lanes.len().max(1);
        let times = self.messages.iter().map(|message| canvas.text_width(&message.time)).fold(60.0, f64::max);
        let notes = self.messages.iter().map(|message| canvas.text_width(&message.note)).fold(0.0, f64::max);
        let edge = 70.0;
        let (first, last) = (times + edge, (canvas.width - notes - edge).max(times + edge + 200.0));
        let sheet = (last + edge + notes).max(canvas.width);
        let x = |lane: usize| first + (last - first) * lane as f64 / lanes.saturating_sub(1).max(1) as f64;
        let top = canvas.line() * 2.0 + 20.0;
        let bottom = top + STEP * (self.messages.len() as f64 + 0.5);
        let room = (last - first) / lanes.saturating_sub(1).max(1) as f64;
        let body = html! {
            text class="strong" x="0" y=(px(canvas.letter)) { (canvas.fitted(&self.title, sheet)) }
            text class="soft" x="0" y=(px(top - 12.0)) { (printable(&self.unit)) }
            @for (number, name) in self.lanes.iter().enumerate() {
                text class="strong middle" x=(px(x(number))) y=(px(top - 12.0)) { (canvas.fitted(name, room)) }
                (line("axis", (x(number), top - 4.0), (x(number), bottom)))
            }
            @for (number, message) in self.messages.iter().enumerate() {
                (self.arrow(canvas, message, number, &x, top + STEP * (number as f64 + 0.9), sheet - notes))
            }
        };
        let svg = html! {
            svg xmlns="http://www.w3.org/2000/svg" class="plot wide" role="img"
                viewBox=(format!("0 0 {} {}", px(sheet), px(bottom + 8.0))) {
                title { (printable(&self.title)) }
                style { (PreEscaped(STYLE)) }
                rect width="100%" height="100%" style="fill: var(--ground)" {}
                (body)
            }
        };
        svg.into_string() + "\n"
    }

    fn arrow(
        &self,
        canvas: Canvas,
        message: &SequenceMessage,
        number: usize,
        x: &dyn Fn(usize) -> f64,
        y: f64,
        notes: f64,
    ) -> Markup {
        let (from, to) = (x(message.from), x(message.to));
        let direction = if to > from { 1.0 } else { -1.0 };
        let before = number.checked_sub(1).and_then(|before| self.messages.get(before));
        let is_new = before.is_none_or(|before| before.time != message.time);
        let tip = |dy: f64| format!("{},{}", px(to - 9.0 * direction), px(y + dy));
        let color = format!("s{} ink", message.from % 7);
        html! {
            @if is_new {
                text class="soft" x="0" y=(px(y + 4.0)) { (message.time) }
            }
            g class=(format!("s{}", message.from % 7)) {
                (line("curve", (from, y), (to - 8.0 * direction, y)))
            }
            polygon class=(color) points=(format!("{},{} {} {}", px(to), px(y), tip(-4.5), tip(4.5))) {}
            text class="middle" x=(px((from + to) / 2.0)) y=(px(y - 5.0)) {
                (canvas.fitted(&message.label, (to - from).abs() - 16.0))
            }
            text class="soft" x=(px(notes)) y=(px(y + 4.0)) { (printable(&message.note)) }
        }
    }
}

/// Returns the lanes of one line, and the arrow between two of them.
fn row(message: &SequenceMessage, lanes: usize, gap: usize) -> String {
    let (low, high) = (message.from.min(message.to), message.from.max(message.to));
    let span = (high - low) * gap - 1;
    let label = truncated(&printable(&message.label), span.saturating_sub(AROUND - 1)).into_owned();
    let rest = span.saturating_sub(width(&label) + 3);
    let (before, behind) = (rest / 2, rest - rest / 2);
    let arrow = if message.from < message.to {
        format!("{} {label} {}>", "-".repeat(before), "-".repeat(behind))
    } else {
        format!("<{} {label} {}", "-".repeat(before), "-".repeat(behind))
    };
    let blank = " ".repeat(gap - 1);
    let mut row = String::from("|");
    let mut lane = 0;
    while lane + 1 < lanes {
        if lane == low {
            row += &arrow;
            lane = high;
        } else {
            row += &blank;
            lane += 1;
        }
        row.push('|');
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(time: &str, from: usize, to: usize, label: &str, note: &str) -> SequenceMessage {
        SequenceMessage { time: time.into(), from, to, label: label.into(), note: note.into() }
    }

    fn chart() -> Sequence {
        let mut chart = Sequence::new("A request", "ms", ["client", "relay", "server"]);
        chart.message(message("0.0", 0, 1, "GET", "41"));
        chart.message(message("0.5", 1, 2, "GET", "41"));
        chart.message(message("0.5", 2, 0, "2.05", "52"));
        chart.message(message("9.0", 0, 3, "to nobody", ""));
        chart.message(message("9.0", 1, 1, "to itself", ""));
        chart
    }

    #[test]
    fn arrows_go_from_lane_to_lane() {
        let text = chart().to_text(&Style::plain(42));
        let expected = "A request\n\n\
            ms   client        relay        server\n\
            0.0  |---- GET ----->|               |  41\n\
            0.5  |               |---- GET ----->|  41\n     \
                 |<------------ 2.05 ------------|  52\n";
        assert_eq!(text, expected, "{text}");
    }

    #[test]
    fn a_label_that_is_too_long_is_cut_and_a_narrow_terminal_survived() {
        for columns in [0, 1, 20, 40, 300] {
            let mut chart = chart();
            chart.message(message("9.5", 0, 2, &"long ".repeat(40), ""));
            let text = chart.to_text(&Style::plain(columns));
            assert!(text.lines().all(|line| width(line) <= columns.max(60)), "{text}");
        }
        assert_eq!(Sequence::new("", "", [] as [&str; 0]).to_text(&Style::plain(80)), "\n");
    }

    #[test]
    fn the_drawing_has_an_arrow_for_each_message_and_no_markup_of_others() {
        let mut chart = chart();
        chart.message(message("9.5", 0, 2, "<script>", "a & b"));
        let svg = chart.to_svg();
        assert_eq!(svg.matches("<polygon").count(), 4);
        assert!(svg.contains("&lt;script&gt;") && svg.contains("a &amp; b"), "{svg}");
        assert!(svg.starts_with("<svg xmlns"));
    }
}
