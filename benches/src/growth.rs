//! How something grows, as a picture: points on two logarithmic axes, and the line that fits them
//! best. On such axes a power of the size is a straight line, and its slope is the exponent.

use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 48.0;
/// Lines of the legend stand so far apart.
const LINE: f64 = 18.0;
/// Told apart by those who see no red or no green, too.
const SERIES: usize = 4;

/// The picture brings its own ground, so that it can be read on any page; the colours follow the
/// reader's choice of light or dark.
const STYLE: &str = "<style>\
.ground{fill:#ffffff}.text{fill:#1f2328}.grid{stroke:#d1d9e0}\
.s0{--c:#0969da}.s1{--c:#bc4c00}.s2{--c:#1a7f37}.s3{--c:#8250df}\
.point{fill:var(--c)}.fit{stroke:var(--c);fill:none;stroke-width:1.5;stroke-dasharray:5 4}.name{fill:var(--c)}\
@media (prefers-color-scheme:dark){\
.ground{fill:#0d1117}.text{fill:#e6edf3}.grid{stroke:#30363d}\
.s0{--c:#58a6ff}.s1{--c:#f0883e}.s2{--c:#3fb950}.s3{--c:#bc8cff}}\
</style>\n";

/// What was measured at several sizes.
#[derive(Debug, Clone)]
pub(crate) struct Growth {
    /// The name of the file, without its ending.
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) across: String,
    pub(crate) up: String,
    pub(crate) series: Vec<Series>,
}

#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// `factor * size ^ exponent`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fit {
    pub(crate) factor: f64,
    pub(crate) exponent: f64,
}

impl Growth {
    /// What grows, with what, and in which unit.
    pub(crate) fn new(name: &str, [title, across, up]: [&str; 3], series: Vec<Series>) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            across: across.to_owned(),
            up: up.to_owned(),
            series,
        }
    }
}

impl Series {
    pub(crate) fn new(name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let is_there = |(x, y): &(f64, f64)| *x > 0.0 && *y > 0.0;
        Self {
            name: name.to_owned(),
            // Nothing has no logarithm.
            points: points.into_iter().filter(is_there).collect(),
        }
    }

    /// Least squares of the logarithms. `None` with fewer than two sizes.
    pub(crate) fn fit(&self) -> Option<Fit> {
        let points = self.points.iter().map(|(x, y)| (x.ln(), y.ln()));
        let points: Vec<(f64, f64)> = points.collect();
        let count = points.len() as f64;
        let mean = |get: fn(&(f64, f64)) -> f64| points.iter().map(get).sum::<f64>() / count;
        let (x, y) = (mean(|it| it.0), mean(|it| it.1));
        let spread: f64 = points.iter().map(|it| (it.0 - x).powi(2)).sum();
        if points.len() < 2 || spread < 1e-12 {
            return None;
        }
        let together: f64 = points.iter().map(|it| (it.0 - x) * (it.1 - y)).sum();
        let exponent = together / spread;
        Some(Fit {
            factor: (y - exponent * x).exp(),
            exponent,
        })
    }
}

/// One axis: the powers of ten around all values.
#[derive(Debug, Clone, Copy)]
struct Axis {
    least: i32,
    most: i32,
}

impl Axis {
    fn around(values: impl Iterator<Item = f64>) -> Self {
        let logs: Vec<f64> = values.map(f64::log10).collect();
        let least = logs.iter().copied().fold(f64::INFINITY, f64::min);
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if logs.is_empty() {
            return Self { least: 0, most: 1 };
        }
        // A value on a power of ten must not come to lie beyond it by its last digit.
        let least = (least + 1e-9).floor() as i32;
        Self {
            least,
            most: ((most - 1e-9).ceil() as i32).max(least + 1),
        }
    }

    fn share(self, value: f64) -> f64 {
        (value.log10() - f64::from(self.least)) / f64::from(self.most - self.least)
    }

    fn ticks(self) -> impl Iterator<Item = f64> {
        (self.least..=self.most).map(|power| 10_f64.powi(power))
    }
}

impl Growth {
    pub(crate) fn svg(&self) -> String {
        let all = || self.series.iter().flat_map(|series| &series.points);
        let x = Axis::around(all().map(|it| it.0));
        let y = Axis::around(all().map(|it| it.1));
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n{STYLE}\
             <rect class=\"ground\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n"
        );
        text(&mut out, (LEFT, 16.0), ("start", "text"), &self.title);
        text(&mut out, (LEFT, 32.0), ("start", "text"), &self.up);
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        let below = (middle, HEIGHT - 8.0);
        text(&mut out, below, ("middle", "text"), &self.across);
        for tick in x.ticks() {
            let at = right(x.share(tick));
            line(&mut out, (at, TOP), (at, HEIGHT - BOTTOM), "grid");
            let below = (at, HEIGHT - BOTTOM + 16.0);
            text(&mut out, below, ("middle", "text"), &label(tick));
        }
        for tick in y.ticks() {
            let at = down(y.share(tick));
            line(&mut out, (LEFT, at), (WIDTH - RIGHT, at), "grid");
            let beside = (LEFT - 6.0, at + 4.0);
            text(&mut out, beside, ("end", "text"), &label(tick));
        }
        for (number, series) in self.series.iter().enumerate() {
            draw(&mut out, series, number, (x, y));
        }
        out + "</svg>\n"
    }
}

fn draw(out: &mut String, series: &Series, number: usize, (x, y): (Axis, Axis)) {
    let _ = writeln!(out, "<g class=\"s{}\">", number % SERIES);
    let fit = series.fit();
    let ends = series.points.first().zip(series.points.last());
    if let (Some(fit), Some((first, last))) = (fit, ends) {
        let at = |size: f64| {
            let value = fit.factor * size.powf(fit.exponent);
            (right(x.share(size)), down(y.share(value)))
        };
        line(out, at(first.0), at(last.0), "fit");
    }
    for (size, value) in &series.points {
        let (cx, cy) = (right(x.share(*size)), down(y.share(*value)));
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "<circle class=\"point\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"4\"/>"
        );
    }
    let legend = match fit {
        Some(fit) => format!("{}: exponent {:.2}", series.name, fit.exponent),
        None => series.name.clone(),
    };
    let place = (LEFT + 12.0, TOP + LINE * (number as f64 + 1.0));
    text(out, place, ("start", "name"), &legend);
    out.push_str("</g>\n");
}

fn down(share: f64) -> f64 {
    HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)
}

fn right(share: f64) -> f64 {
    LEFT + share * (WIDTH - LEFT - RIGHT)
}

/// Powers of ten from a thousandth to a million are read most easily as they are.
fn label(value: f64) -> String {
    match value.log10().round() as i32 {
        power @ 0..=6 => crate::report::count(10_u64.pow(power.unsigned_abs())),
        power @ -3..0 => format!("{value:.*}", power.unsigned_abs() as usize),
        power => format!("1e{power}"),
    }
}

fn line(out: &mut String, from: (f64, f64), to: (f64, f64), class: &str) {
    let _ = writeln!(
        out,
        "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn text(out: &mut String, at: (f64, f64), (anchor, class): (&str, &str), text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        out,
        "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{text}</text>",
        at.0, at.1
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_is_found_again() {
        let points = [1.0, 10.0, 100.0, 1000.0].map(|n: f64| (n, 3.0 * n.powf(1.5)));
        let fit = Series::new("s", points).fit().unwrap();
        assert!((fit.exponent - 1.5).abs() < 1e-9, "{fit:?}");
        assert!((fit.factor - 3.0).abs() < 1e-9, "{fit:?}");
        let flat = Series::new("s", [(1.0, 5.0), (10.0, 5.0)]).fit().unwrap();
        assert!(flat.exponent.abs() < 1e-9, "{flat:?}");
        assert_eq!(Series::new("s", [(1.0, 5.0), (10.0, 0.0)]).fit(), None);
    }

    #[test]
    fn points_lie_between_the_axes_and_the_legend_has_the_exponent() {
        let growth = Growth {
            name: "n".to_owned(),
            title: "a < b".to_owned(),
            across: "workers".to_owned(),
            up: "MiB".to_owned(),
            series: vec![Series::new("memory", [(10.0, 1.0), (1000.0, 100.0)])],
        };
        let svg = growth.svg();
        assert!(svg.contains("memory: exponent 1.00"), "{svg}");
        assert!(svg.contains("a &lt; b"), "{svg}");
        for place in ["cx=\"72.0\" cy=\"332.0\"", "cx=\"696.0\" cy=\"40.0\""] {
            assert!(svg.contains(place), "{place} in {svg}");
        }
        assert!(svg.contains("prefers-color-scheme:dark"));
    }
}
