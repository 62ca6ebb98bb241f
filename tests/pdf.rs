//! Read on PDFs, with the real process that takes them apart: pages, and files that are not what
//! they seem.

use gaffer_protocol::ResultPart;
use gaffer_protocol::message::ToolInput;
use gaffer_tools::read::Read;
use gaffer_tools::{Context, erase};
use serde_json::{Value, json};
use std::path::Path;

struct Place {
    temp: tempfile::TempDir,
    context: Context,
}

impl Place {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_gaffer"));
        let context = Context::in_folder(temp.path(), temp.path(), temp.path(), program);
        Self { temp, context }
    }

    async fn read(&self, bytes: impl AsRef<[u8]>, pages: Value) -> (String, bool) {
        std::fs::write(self.temp.path().join("a.pdf"), bytes).unwrap();
        let input = json!({"file_path": "a.pdf", "pages": pages}).to_string();
        let input = ToolInput::from_text(&input);
        let output = erase(Read).call(&input, &self.context).await;
        let ResultPart::Text(text) = &output.parts[0] else {
            panic!("no text")
        };
        (text.clone(), output.is_error)
    }

    async fn refused(&self, bytes: impl AsRef<[u8]>, pages: Value) -> String {
        let (text, is_error) = self.read(bytes, pages).await;
        assert!(is_error, "{text}");
        text
    }
}

/// Writes PDFs.
struct Writer {
    objects: Vec<Vec<u8>>,
    trailer: String,
}

impl Writer {
    /// A file with the page tree as its second object and a font as its third.
    fn new() -> Self {
        let font = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>";
        let catalog = "<</Type/Catalog/Pages 2 0 R>>";
        Self {
            objects: [catalog, "", font].map(|text| text.into()).into(),
            trailer: String::new(),
        }
    }

    /// Adds an object and gives its number.
    fn add(&mut self, body: impl Into<Vec<u8>>) -> usize {
        self.objects.push(body.into());
        self.objects.len()
    }

    fn stream(&mut self, dict: &str, data: &[u8]) -> usize {
        let length = data.len();
        let head = format!("<<{dict}/Length {length}>>stream\n");
        self.add([head.as_bytes(), data, b"\nendstream"].concat())
    }

    fn page(&mut self, content: usize, resources: &str) -> usize {
        self.add(format!(
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents {content} 0 R/Resources<</Font<</F 3 0 R>>{resources}>>>>"
        ))
    }

    fn finish(mut self, pages: &[usize]) -> Vec<u8> {
        let kids: String = pages.iter().map(|page| format!("{page} 0 R ")).collect();
        let count = pages.len();
        self.objects[1] = format!("<</Type/Pages/Count {count}/Kids[{kids}]>>").into();
        let mut out = b"%PDF-1.7\n".to_vec();
        let mut table = String::from("0000000000 65535 f \n");
        for (place, object) in self.objects.iter().enumerate() {
            table += &format!("{:010} 00000 n \n", out.len());
            out.extend(format!("{} 0 obj\n", place + 1).bytes());
            out.extend(object);
            out.extend(b"\nendobj\n");
        }
        let (start, size) = (out.len(), self.objects.len() + 1);
        let trailer = &self.trailer;
        out.extend(
            format!("xref\n0 {size}\n{table}trailer\n<</Size {size}/Root 1 0 R{trailer}>>\nstartxref\n{start}\n%%EOF\n")
                .bytes(),
        );
        out
    }
}

/// A file whose pages are drawn by these programs.
fn pdf(programs: &[&str]) -> Vec<u8> {
    let mut writer = Writer::new();
    let mut pages = Vec::new();
    for program in programs {
        let content = writer.stream("", program.as_bytes());
        pages.push(writer.page(content, ""));
    }
    writer.finish(&pages)
}

/// A file with so many pages, each with its number.
fn numbered(count: usize) -> Vec<u8> {
    let page = |number| format!("BT /F 12 Tf 50 700 Td (This is page {number}.) Tj ET");
    let programs: Vec<String> = (1..=count).map(page).collect();
    pdf(&programs.iter().map(String::as_str).collect::<Vec<_>>())
}

#[tokio::test]
async fn a_page_is_words_lines_and_columns() {
    let place = Place::new();
    let first = "BT /F 12 Tf 50 700 Td (Hello, world) Tj 0 -14 Td [(sec) 20 (on) -60 (d) -180 (line)] TJ \
                 0 -40 Td (A paragraph) Tj 200 0 Td (beside) Tj ET";
    let twice = "BT /F 12 Tf 2 Tr 50 700 Td (Outlined \\(once\\)) Tj ET \
                 BT /F 12 Tf 3 Tr 50 600 Td (unseen) Tj ET";
    let (text, is_error) = place.read(pdf(&[first, twice, ""]), Value::Null).await;
    assert!(!is_error, "{text}");
    let want = "[Page 1 of 3]\nHello, world\nsecond line\n\nA paragraph\tbeside\n\
                [Page 2 of 3]\nOutlined (once)\n\nunseen\n\
                [Page 3 of 3]\n[This page has no text.]\n";
    assert_eq!(text, want);
}

#[tokio::test]
async fn pages_are_chosen_and_long_files_need_a_choice() {
    let place = Place::new();
    let three = numbered(3);
    let (text, _) = place.read(&three, json!("2")).await;
    assert_eq!(
        text,
        "[Page 2 of 3]\nThis is page 2.\n[The PDF goes on: read it with pages \"3-3\".]\n"
    );
    let (text, _) = place.read(&three, json!("2-9")).await;
    assert!(text.ends_with("[Page 3 of 3]\nThis is page 3.\n"), "{text}");
    // Models fill in what they need not.
    let (text, _) = place.read(&three, json!("")).await;
    assert!(text.ends_with("This is page 3.\n"), "{text}");
    let rows = [
        ("4", "it has only 3 pages"),
        ("0", "such as \"3\" or \"1-5\""),
        ("three", "such as \"3\" or \"1-5\""),
        ("1-30", "pages names 30 pages"),
    ];
    for (pages, want) in rows {
        let text = place.refused(&three, json!(pages)).await;
        assert!(text.contains(want), "{pages}: {text}");
    }
    let long = numbered(32);
    let text = place.refused(&long, Value::Null).await;
    let want = "it is a PDF of 32 pages: name up to 20 of them in pages, such as \"1-10\".";
    assert!(text.ends_with(want), "{text}");
    let (text, _) = place.read(&long, json!("1-10")).await;
    assert!(text.ends_with("pages \"11-30\".]\n"), "{text}");
    let text = place.refused("plain text", json!("1")).await;
    assert!(text.contains("it is not a PDF"), "{text}");
}

#[tokio::test]
async fn too_much_text_ends_with_a_word_on_how_to_go_on() {
    let line = format!("({}) Tj 0 -14 Td ", "word ".repeat(200));
    let page = format!("BT /F 12 Tf 50 700 Td {} ET", line.repeat(150));
    let (text, is_error) = Place::new().read(pdf(&[&page, &page]), Value::Null).await;
    assert!(!is_error && text.len() < 270_000, "{}", text.len());
    assert!(text.contains("\n[Page 2 of 2]\nword"));
    assert!(text.contains("[Page 2 was not shown whole"));
}

#[tokio::test]
async fn a_scan_is_said_to_be_one() {
    let place = Place::new();
    let mut writer = Writer::new();
    let image =
        "/Type/XObject/Subtype/Image/Width 1/Height 1/ColorSpace/DeviceGray/BitsPerComponent 8";
    let image = writer.stream(image, b"x");
    let content = writer.stream("", b"600 0 0 800 0 0 cm /I Do");
    let page = writer.page(content, &format!("/XObject<</I {image} 0 R>>"));
    let (text, is_error) = place.read(writer.finish(&[page]), Value::Null).await;
    assert!(!is_error && text.contains("it may be a scan"), "{text}");
}

#[tokio::test]
async fn files_that_are_broken_or_locked_are_said_to_be() {
    let place = Place::new();
    let mut writer = Writer::new();
    writer.trailer = format!(
        "/ID[<00><00>]/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<{0}>/U<{0}>>>",
        "5a".repeat(32)
    );
    let content = writer.stream("", b"");
    let page = writer.page(content, "");
    let text = place.refused(writer.finish(&[page]), Value::Null).await;
    assert!(text.contains("needs a password"), "{text}");

    let garbage: Vec<u8> = (0..5000_u32).map(|n| (n * n % 251) as u8).collect();
    let garbage = [b"%PDF-1.7\n".as_slice(), &garbage].concat();
    for bytes in [garbage.as_slice(), b"%PDF-", b"%PDF-1.4\n%%EOF"] {
        let text = place.refused(bytes, Value::Null).await;
        assert!(text.contains("it has no pages to be found"), "{text}");
    }
    // Of a file that ends too early what is there is read.
    let whole = numbered(3);
    for part in 1..8 {
        let cut = &whole[..whole.len() * part / 8];
        let (text, is_error) = place.read(cut, Value::Null).await;
        assert!(
            text.starts_with("[Page 1 of ") || is_error && text.contains("no pages"),
            "{part}: {text}"
        );
    }
}

/// Pictures within pictures, each drawn twice by the one around it: they would take years.
fn endless() -> Vec<u8> {
    let mut writer = Writer::new();
    let next = |own: usize| format!("/Resources<</XObject<</X {} 0 R>>>>", own + 1);
    for own in 4..44 {
        let form = format!("/Type/XObject/Subtype/Form/BBox[0 0 9 9]{}", next(own));
        writer.stream(&form, b"/X Do /X Do");
    }
    writer.stream("/Type/XObject/Subtype/Form/BBox[0 0 9 9]", b"0 0 m 1 1 l S");
    let content = writer.stream("", b"/X Do");
    let page = writer.page(content, "/XObject<</X 4 0 R>>");
    writer.finish(&[page])
}

// Time is simulated, so it is over while the real process has hardly begun.
#[tokio::test(start_paused = true)]
async fn a_file_that_takes_too_long_is_given_up() {
    let text = Place::new().refused(endless(), Value::Null).await;
    assert!(text.contains("takes longer than 30 s"), "{text}");
}

#[tokio::test]
async fn a_file_that_unpacks_to_too_much_harms_nobody() {
    // Unpacked, each two of these bytes are 128 of the same, up to a mark of the end, which is
    // itself packed as often as all the rest.
    let mut packed = vec![0x81; 2000];
    packed.extend([4, 2, 0, 0x80, 0x80, 0x80, 0x80]);
    let mut writer = Writer::new();
    let filters = "/RunLengthDecode".repeat(4);
    let content = writer.stream(&format!("/Filter[{filters}]"), &packed);
    let page = writer.page(content, "");
    let text = Place::new()
        .refused(writer.finish(&[page]), Value::Null)
        .await;
    assert!(text.contains("needs too much memory"), "{text}");
}
