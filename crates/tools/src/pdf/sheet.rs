//! One page of a PDF: where its glyphs are, put back into words and lines.

use hayro_interpret::font::{Glyph, GlyphRun, PositionedGlyph};
use hayro_interpret::hayro_cmap::{BfString, WritingMode};
use hayro_interpret::kurbo::{BezPath, Point, Vec2};
use hayro_interpret::{
    BlendMode, ClipPath, Device, DrawMode, DrawProps, Image, ImageDrawProps, SoftMask,
};

/// Glyphs are measured in thousandths of their size.
const UNITS: f64 = 1000.0;
/// What a font does not say the width of is half as wide as it is high.
const USUAL_WIDTH: f64 = 0.5;
/// Gaps between glyphs as parts of their size: from here on a space stands between them. Lines that
/// are set tightly have spaces hardly wider than this; letters are moved apart by less.
const SPACE: f64 = 0.12;
/// From here on they are columns of a table.
const COLUMN: f64 = 1.5;
/// How far a glyph may be above or below the others of its line, as small figures are.
const LINE: f64 = 0.6;
/// From here on a line was left free.
const PARAGRAPH: f64 = 1.9;

/// Collects the text of a page in the order in which it is drawn, which nearly always is that of
/// reading.
#[derive(Debug)]
pub(super) struct Sheet {
    text: String,
    /// How many bytes are wanted.
    limit: usize,
    pen: Option<Pen>,
    /// Where the last run of glyphs began.
    begin: Option<Point>,
    images: usize,
    /// Glyphs of which the file does not say which letters they are.
    unknown: usize,
}

/// Where the last glyph ended.
#[derive(Debug, Clone, Copy)]
struct Pen {
    at: Point,
    /// The direction of its line, of length 1.
    along: Vec2,
    size: f64,
}

impl Sheet {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            text: String::new(),
            limit,
            pen: None,
            begin: None,
            images: 0,
            unknown: 0,
        }
    }

    /// Whether there is more text than is wanted.
    pub(super) fn is_full(&self) -> bool {
        self.text.len() >= self.limit
    }

    /// The text, with a word about what is not in it.
    pub(super) fn finish(self) -> String {
        let mut out = String::with_capacity(self.text.len() + 1);
        for line in self.text.lines() {
            out.push_str(line.trim_end());
            out.push('\n');
        }
        if out.trim().is_empty() {
            out = match self.images {
                0 => "[This page has no text.]\n".to_owned(),
                _ => "[This page has no text, only images: it may be a scan. Tools such as pdftoppm, where they are installed, make an image of it that can be read.]\n".to_owned(),
            };
        } else if self.unknown > 0 {
            let unknown = self.unknown;
            out.push_str(&format!(
                "[Of {unknown} characters, shown as \u{fffd}, the file does not say what they are.]\n"
            ));
        }
        out
    }

    fn put(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '\u{a0}' => self.text.push(' '),
                // A word may be divided here, which is for who sets lines.
                '\u{ad}' => {}
                c if c.is_control() => {}
                c => self.text.push(c),
            }
        }
    }

    /// Puts what stands between the last glyph and the next.
    fn go(&mut self, to: Pen, is_blank: bool) {
        let Some(pen) = self.pen else { return };
        let size = pen.size.max(to.size);
        let way = to.at - pen.at;
        let (along, across) = (way.dot(pen.along), way.cross(pen.along).abs());
        let is_turned = pen.along.dot(to.along) < 0.9;
        if is_turned || across > LINE * size || along < -COLUMN * size {
            let is_paragraph = !is_turned && across > PARAGRAPH * size;
            self.text.push_str(if is_paragraph { "\n\n" } else { "\n" });
        } else if !is_blank && !self.text.ends_with(char::is_whitespace) {
            if along > COLUMN * size {
                self.text.push('\t');
            } else if along > SPACE * size {
                self.text.push(' ');
            }
        }
    }
}

impl<'a> Device<'a> for Sheet {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, mode: &DrawMode) {
        let place =
            |at: Point, glyph: &PositionedGlyph<'_>| props.transform * glyph.transform() * at;
        let begin = run.glyphs().first().map(|first| place(Point::ZERO, first));
        // Letters with a line around them are drawn twice.
        let is_again = matches!(mode, DrawMode::Stroke(_)) && begin == self.begin;
        self.begin = begin;
        if is_again {
            return;
        }
        for glyph in run.glyphs() {
            if self.is_full() {
                return;
            }
            let at = place(Point::ZERO, glyph);
            let right = place(Point::new(UNITS, 0.0), glyph) - at;
            let up = place(Point::new(0.0, UNITS), glyph) - at;
            let (along, width) = match run.writing_mode() {
                WritingMode::Vertical => (-up, 1.0),
                WritingMode::Horizontal => (right, width(glyph)),
            };
            let end = at + along * width;
            let pen = Pen {
                at,
                along: along / along.hypot().max(f64::MIN_POSITIVE),
                size: up.hypot().max(f64::MIN_POSITIVE),
            };
            let text = match glyph.as_unicode() {
                Some(BfString::Char(c)) => c.to_string(),
                Some(BfString::String(text)) => text,
                None => {
                    self.unknown += 1;
                    '\u{fffd}'.to_string()
                }
            };
            self.go(pen, text.trim().is_empty());
            self.put(&text);
            self.pen = Some(Pen { at: end, ..pen });
        }
    }

    fn draw_image(&mut self, _: Image<'a, '_>, _: ImageDrawProps<'a>) {
        self.images += 1;
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {}

    fn push_clip_path(&mut self, _: &ClipPath) {}

    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}

    fn pop_clip(&mut self) {}

    fn pop_transparency_group(&mut self) {}
}

/// How far the next glyph is away, as a part of the size.
fn width(glyph: &Glyph<'_>) -> f64 {
    let width = match glyph {
        Glyph::Outline(glyph) => glyph.advance_width(),
        // Its measure is its own.
        Glyph::Type3(_) => None,
    };
    width.map_or(USUAL_WIDTH, |width| f64::from(width) / UNITS)
}
