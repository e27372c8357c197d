//! Plain-text tables: columns separated by two spaces, numbers right-aligned.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use crate::spec::visible::visible;

/// Lines of `rows` under `header`; columns of numbers are right-aligned.
pub fn table(header: &[&str], rows: impl IntoIterator<Item: AsRef<[String]>>) -> String {
    let mut table = Table::new();
    table.set_content_arrangement(ContentArrangement::Disabled);
    lines(table, header, &rows.into_iter().collect::<Vec<_>>())
}

/// The same in lines of at most `width` characters: long cells are wrapped.
pub fn table_within(header: &[&str], rows: impl IntoIterator<Item: AsRef<[String]>>, width: usize) -> String {
    let rows: Vec<_> = rows.into_iter().collect();
    let wide = table(header, &rows);
    if wide.lines().all(|line| line.chars().count() <= width) {
        return wide;
    }
    let mut table = Table::new();
    table
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(width).unwrap_or(u16::MAX));
    lines(table, header, &rows)
}

fn lines(mut table: Table, header: &[&str], rows: &[impl AsRef<[String]>]) -> String {
    table.load_style(presets::NOTHING);
    // A cell is one line: names in it come from outside.
    table.set_header(header.iter().map(|name| visible(name).into_owned()).collect::<Vec<_>>());
    let shown = |row: &[String]| row.iter().map(|cell| visible(cell).into_owned()).collect::<Vec<_>>();
    table.add_rows(rows.iter().map(|row| shown(row.as_ref())));
    let numeric = |column: usize| {
        let mut cells =
            rows.iter().filter_map(|row| row.as_ref().get(column)).filter(|cell| !cell.is_empty()).peekable();
        let number = |cell: &String| cell.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '.' | '-'));
        cells.peek().is_some() && cells.all(number)
    };
    for at in 0..header.len() {
        if let Some(column) = table.column_mut(at) {
            column.set_padding((0, 2));
            if numeric(at) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    let mut text: String = table.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    if rows.is_empty() {
        text.push_str("(none)\n");
    }
    text
}

/// `70553706496` → `70,553,706,496`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `[0, 1, 2, 5]` → `0-2, 5`.
pub fn ranges(numbers: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => parts.push((number, number)),
        }
    }
    let spell =
        |(first, last): (u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    // Layers that alternate would fill the line.
    if parts.len() > 4 {
        let shown: Vec<String> = parts[..2].iter().copied().map(spell).collect();
        let last = parts.last().copied().map(spell).unwrap_or_default();
        return format!("{}, … {last} ({})", shown.join(", "), numbers.len());
    }
    parts.into_iter().map(spell).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_numbers_stand_to_the_right() {
        let rows = [vec!["a".into(), "1".into()], vec!["long".into(), "1,000".into()]];
        assert_eq!(table(&["name", "n"], &rows), "name      n\na         1\nlong  1,000\n");
        assert_eq!(table(&["name"], &[] as &[Vec<String>]), "name\n(none)\n");
    }

    #[test]
    fn a_table_too_wide_wraps_its_cells() {
        let rows = [vec!["one two three four five".into(), "1".into()], vec!["six".into(), "22".into()]];
        let text = table_within(&["words", "n"], &rows, 20);
        assert!(text.lines().all(|line| line.chars().count() <= 20) && text.contains("five"), "{text}");
        assert_eq!(table_within(&["words", "n"], &rows, 80), table(&["words", "n"], &rows));
    }

    #[test]
    fn numbers_and_ranges_are_brief() {
        assert_eq!(grouped(70_553_706_496), "70,553,706,496");
        assert_eq!(grouped(999), "999");
        assert_eq!(ranges(&[0, 1, 2, 5]), "0-2, 5");
        assert_eq!(ranges(&[0, 2, 4, 6, 8, 10]), "0, 2, … 10 (6)");
        assert_eq!(ranges(&[]), "");
    }
}
