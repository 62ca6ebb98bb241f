//! A curve as a picture: a few lines of SVG.

use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 300.0;
/// Around the plot, for what stands at the axes.
const LEFT: f64 = 56.0;
const RIGHT: f64 = 56.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = 40.0;
/// More points than these only make the file larger.
const MOST_POINTS: usize = 240;

/// One line with an axis of its own.
#[derive(Debug)]
pub(crate) struct Curve<'a> {
    pub(crate) name: &'a str,
    pub(crate) colour: &'a str,
    /// The end of its axis.
    pub(crate) most: f64,
    pub(crate) points: Vec<(f64, f64)>,
}

/// The first curve has its axis to the left, the second to the right.
pub(crate) fn svg(title: &str, across: &str, curves: &[Curve<'_>; 2]) -> String {
    let ends = curves.iter().flat_map(|curve| curve.points.last());
    let end = ends.map(|(x, _)| *x).fold(1e-9, f64::max);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    text(&mut out, (LEFT, 14.0), "start", "black", title);
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    text(&mut out, (middle, HEIGHT - 6.0), "middle", "black", across);
    for part in 0..=4 {
        let share = f64::from(part) / 4.0;
        let y = down(share);
        line(&mut out, (LEFT, y), (WIDTH - RIGHT, y));
        for (curve, (x, anchor)) in curves
            .iter()
            .zip([(LEFT - 6.0, "end"), (WIDTH - RIGHT + 6.0, "start")])
        {
            let label = format!("{:.0}", curve.most * share);
            text(&mut out, (x, y + 4.0), anchor, curve.colour, &label);
        }
        let label = format!("{:.0}", end * share);
        text(
            &mut out,
            (right(share), HEIGHT - 24.0),
            "middle",
            "black",
            &label,
        );
    }
    for (curve, (x, anchor)) in curves.iter().zip([(LEFT, "start"), (WIDTH - RIGHT, "end")]) {
        text(&mut out, (x, TOP - 6.0), anchor, curve.colour, curve.name);
        polyline(&mut out, curve, end);
    }
    out + "</svg>\n"
}

fn down(share: f64) -> f64 {
    HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)
}

fn right(share: f64) -> f64 {
    LEFT + share * (WIDTH - LEFT - RIGHT)
}

fn line(out: &mut String, from: (f64, f64), to: (f64, f64)) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#ddd\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn text(out: &mut String, at: (f64, f64), anchor: &str, colour: &str, text: &str) {
    let _ = writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{text}</text>",
        at.0, at.1
    );
}

fn polyline(out: &mut String, curve: &Curve<'_>, end: f64) {
    let step = curve.points.len().div_ceil(MOST_POINTS).max(1);
    let points = curve.points.iter().step_by(step);
    let points = points.map(|(x, y)| {
        let share = (y / curve.most).clamp(0.0, 1.0);
        format!("{:.1},{:.1}", right(x / end), down(share))
    });
    let points: Vec<String> = points.collect();
    let _ = writeln!(
        out,
        "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" points=\"{}\"/>",
        curve.colour,
        points.join(" ")
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_goes_from_corner_to_corner() {
        let curve = |name| Curve {
            name,
            colour: "#c00",
            most: 10.0,
            points: vec![(0.0, 0.0), (5.0, 10.0)],
        };
        let picture = svg("t", "s", &[curve("one"), curve("two")]);
        assert!(
            picture.contains("points=\"56.0,260.0 664.0,36.0\""),
            "{picture}"
        );
        assert_eq!(picture.matches("<polyline").count(), 2);
        assert!(picture.ends_with("</svg>\n"));
    }
}
