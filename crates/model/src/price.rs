//! What tokens cost, and how much a model can take: a table as data, with its date.

use gaffer_protocol::{Cost, Usage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const TABLE: &str = include_str!("../data/prices.json");

/// A model's row. A missing figure is unknown, never zero.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Dollars for a million tokens.
    pub input: Option<f64>,
    pub output: Option<f64>,
    /// Without it a cache read costs what input costs.
    pub cache_read: Option<f64>,
    /// Without it a cache write costs what input costs.
    pub cache_write: Option<f64>,
    /// How many tokens the model takes in all.
    pub context: Option<u64>,
    /// How many tokens one answer may have.
    pub max_output: Option<u32>,
}

impl Price {
    /// This row's figures where it has them, else the other's.
    #[must_use]
    pub fn over(&self, base: &Self) -> Self {
        Self {
            input: self.input.or(base.input),
            output: self.output.or(base.output),
            cache_read: self.cache_read.or(base.cache_read),
            cache_write: self.cache_write.or(base.cache_write),
            context: self.context.or(base.context),
            max_output: self.max_output.or(base.max_output),
        }
    }

    /// Whether all prices are numbers that a price can be.
    pub fn is_sound(&self) -> bool {
        let figures = [self.input, self.output, self.cache_read, self.cache_write];
        figures
            .into_iter()
            .flatten()
            .all(|figure| figure.is_finite() && figure >= 0.0)
    }
}

#[derive(Deserialize)]
struct Table {
    date: String,
    models: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    #[serde(rename = "match")]
    id: String,
    #[serde(default)]
    input: Option<f64>,
    #[serde(default)]
    output: Option<f64>,
    #[serde(default)]
    cache_read: Option<f64>,
    #[serde(default)]
    cache_write: Option<f64>,
    #[serde(default)]
    context: Option<u64>,
    #[serde(default)]
    max_output: Option<u32>,
}

/// The built-in table with the settings' rows over it.
#[derive(Debug, Clone)]
pub struct Prices {
    date: String,
    rows: BTreeMap<String, Price>,
}

impl Prices {
    /// `over` holds the settings' rows; a figure that is given there wins, the others stay.
    pub fn new(over: &BTreeMap<String, Price>) -> Self {
        // The table is part of the program; a test reads it.
        let table = serde_json::from_str(TABLE).unwrap_or(Table {
            date: String::new(),
            models: Vec::new(),
        });
        let row = |row: Row| {
            let price = Price {
                input: row.input,
                output: row.output,
                cache_read: row.cache_read,
                cache_write: row.cache_write,
                context: row.context,
                max_output: row.max_output,
            };
            (row.id, price)
        };
        let mut rows: BTreeMap<_, _> = table.models.into_iter().map(row).collect();
        for (id, new) in over {
            let known = find(&rows, id).cloned().unwrap_or_default();
            rows.insert(id.clone(), new.over(&known));
        }
        Self {
            date: table.date,
            rows,
        }
    }

    /// The day of the newest figure in the built-in table.
    pub fn date(&self) -> &str {
        &self.date
    }

    pub fn of(&self, model: &str) -> Option<&Price> {
        find(&self.rows, model)
    }

    /// The newest model of a family, such as `claude-opus`.
    pub fn newest(&self, family: &str) -> Option<String> {
        let is_version = |id: &str| {
            let rest = id
                .strip_prefix(family)
                .and_then(|rest| rest.strip_prefix('-'));
            rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '-'))
        };
        let mut all = self.rows.keys().rev();
        all.find(|id| is_version(id)).cloned()
    }

    pub fn cost(&self, model: &str, usage: Usage) -> Cost {
        let price = self.of(model);
        let figures = price.and_then(|price| Some((price, price.input?, price.output?)));
        let Some((price, input, output)) = figures else {
            return if usage.total() == 0 {
                Cost::default()
            } else {
                Cost::Unknown
            };
        };
        let millionths = usage.input as f64 * input
            + usage.output as f64 * output
            + usage.cache_read as f64 * price.cache_read.unwrap_or(input)
            + usage.cache_write as f64 * price.cache_write.unwrap_or(input);
        Cost::MicroUsd(millionths.round() as u64)
    }
}

/// A row is for its own id and for the same id with a suffix (a date, a variant); the longest row
/// that fits wins. Gateways put the maker's name in front of the id.
fn find<'a>(rows: &'a BTreeMap<String, Price>, model: &str) -> Option<&'a Price> {
    let bare = model.rsplit('/').next().unwrap_or(model);
    find_prefix(rows, model).or_else(|| find_prefix(rows, bare))
}

fn find_prefix<'a>(rows: &'a BTreeMap<String, Price>, model: &str) -> Option<&'a Price> {
    let mut id = model;
    loop {
        if let Some(price) = rows.get(id) {
            return Some(price);
        }
        let end = id.rfind(['-', '@', ':'])?;
        id = &id[..end];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_reads_and_has_sane_figures() {
        let prices = Prices::new(&BTreeMap::new());
        assert!(prices.rows.len() >= 30);
        assert_eq!(prices.date().len(), 10);
        for (id, price) in &prices.rows {
            let figures = [
                price.input,
                price.output,
                price.cache_read,
                price.cache_write,
            ];
            for figure in figures.into_iter().flatten() {
                assert!((0.0..1000.0).contains(&figure), "{id}: {figure}");
            }
            assert_eq!(price.input.is_some(), price.output.is_some(), "{id}");
            assert!(price.context.is_none_or(|n| n >= 4096), "{id}");
        }
    }

    #[test]
    fn ids_find_their_row() {
        let over: BTreeMap<String, Price> =
            serde_json::from_str(r#"{"house-model":{"input":1,"output":2,"context":16000}}"#)
                .unwrap();
        let prices = Prices::new(&over);
        assert_eq!(
            prices.of("acme/house-model-20261101").unwrap().input,
            Some(1.0)
        );
        assert_eq!(prices.of("house-model"), prices.of("house-model:free"));
        assert!(prices.of("house").is_none());
        let over = serde_json::from_str(r#"{"acme/own":{"input":1,"output":2}}"#).unwrap();
        assert_eq!(Prices::new(&over).of("acme/own").unwrap().input, Some(1.0));
        assert!(prices.of("").is_none());
    }

    #[test]
    fn money_adds_up_and_the_unknown_stays_unknown() {
        let row = r#"{"m":{"input":3,"output":15,"cache_read":0.3,"cache_write":3.75}}"#;
        let prices = Prices::new(&serde_json::from_str(row).unwrap());
        let usage = Usage {
            input: 1000,
            cache_read: 10_000,
            cache_write: 2000,
            output: 400,
        };
        assert_eq!(
            prices.cost("m", usage),
            Cost::MicroUsd(3000 + 3000 + 7500 + 6000)
        );
        assert_eq!(prices.cost("nobody-knows", usage), Cost::Unknown);
        assert_eq!(
            prices.cost("m", usage) + prices.cost("nobody-knows", usage),
            Cost::Unknown
        );
    }

    #[test]
    fn settings_change_single_figures() {
        let table = Prices::new(&BTreeMap::new());
        let known = table.of("claude-opus-5-5").unwrap().clone();
        let over = serde_json::from_str(r#"{"claude-opus-5-5":{"input":1.5}}"#).unwrap();
        let changed = Prices::new(&over).of("claude-opus-5-5").unwrap().clone();
        assert_eq!(
            changed,
            Price {
                input: Some(1.5),
                ..known
            }
        );
    }
}
