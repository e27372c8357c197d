//! Colours of pictures: one table for light and dark pages, safe for colour-blind readers.

/// How colours follow the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SvgTheme {
    /// CSS variables, light or dark as the reader prefers.
    Adaptive,
    /// The light colours in place: for programs that know no CSS variables.
    Light,
}

/// A colour: name, on light pages, on dark pages.
pub type PaletteColour = (&'static str, &'static str, &'static str);

/// Page, texts and lines.
pub const BASE: [PaletteColour; 6] = [
    ("page", "#ffffff", "#11161c"),
    ("ink", "#16202c", "#e8edf2"),
    ("soft", "#4a5765", "#aab6c2"),
    ("grid", "#e1e6eb", "#2a3440"),
    ("axis", "#76828e", "#76828e"),
    ("out", "#f3e3e0", "#3a2522"),
];

/// Series: the hues of Okabe and Ito (2008), darker on light pages and lighter on dark ones.
pub const SERIES: [PaletteColour; 7] = [
    ("s0", "#0072b2", "#56b4e9"),
    ("s1", "#c65300", "#ff8f52"),
    ("s2", "#00805d", "#2ec49a"),
    ("s3", "#a8487f", "#e39ac4"),
    ("s4", "#8f6200", "#e6b03c"),
    ("s5", "#2a7fae", "#8fd0f5"),
    ("s6", "#5b6573", "#b8c2cc"),
];

/// Rules; `$name` is a colour.
const RULES: &str = "\
text{font-family:system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:$ink}\
.page{fill:$page}.heading{font-size:16px;font-weight:600}.name{font-size:13px;font-weight:600}\
.label{font-size:12px;fill:$soft}.tick{font-size:11px;fill:$soft}.value{font-size:11px;paint-order:stroke;stroke:$page;stroke-width:3px}\
.grid{stroke:$grid;stroke-width:1}.axis{stroke:$axis;stroke-width:1;fill:none}\
.limit{stroke:$ink;stroke-width:1;stroke-dasharray:4 3}.out{fill:$out}\
.whisker{stroke-width:1.5;stroke-opacity:.3}.cloud{fill-opacity:.45}.band{fill-opacity:.15;stroke:none}\
.line,.link{fill:none;stroke-linejoin:round}.line{stroke-width:2}.mark{stroke:$page;stroke-width:.3}\
.chosen{fill:none;stroke:$ink;stroke-width:2}.failed{stroke:$soft;stroke-width:1.5;fill:none}\
.empty{fill:$grid}.box{fill:none;stroke:$axis}.unused{fill:none;stroke:$axis;stroke-dasharray:4 3}.dark{fill:#000000;font-size:11px}.light{fill:#ffffff;font-size:11px}";

fn colours() -> impl Iterator<Item = &'static PaletteColour> {
    BASE.iter().chain(&SERIES)
}

/// The variables of the colours on light or dark pages.
fn variables(dark: bool) -> String {
    let all = colours().map(|(name, light, night)| format!("--{name}:{}", if dark { night } else { light }));
    all.collect::<Vec<_>>().join(";")
}

/// The style sheet of a page with pictures: `data-theme` on its root overrides the reader's preference. The page is the
/// background of its pictures.
pub fn page_style() -> String {
    let (light, dark) = (variables(false), variables(true));
    let (_, rules) = rules_of(SvgTheme::Adaptive);
    format!(
        ":root{{{light}}}@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\
         :root[data-theme=dark]{{{dark}}}.picture .page{{fill:none}}{rules}"
    )
}

pub fn style(theme: SvgTheme) -> String {
    let (variables, rules) = rules_of(theme);
    variables + &rules
}

fn rules_of(theme: SvgTheme) -> (String, String) {
    let mut rules = RULES.to_owned();
    for (name, ..) in SERIES {
        rules.push_str(&format!(
            ".{name}{{fill:${name}}}.line.{name},.link.{name},.whisker.{name}{{fill:none;stroke:${name}}}"
        ));
    }
    for (name, light, _) in colours() {
        let value = match theme {
            SvgTheme::Adaptive => format!("var(--{name})"),
            SvgTheme::Light => (*light).to_owned(),
        };
        rules = rules.replace(&format!("${name}"), &value);
    }
    match theme {
        SvgTheme::Light => (String::new(), rules),
        SvgTheme::Adaptive => {
            let (light, dark) = (variables(false), variables(true));
            (format!("svg{{{light}}}@media(prefers-color-scheme:dark){{svg{{{dark}}}}}"), rules)
        }
    }
}

pub fn series(number: usize) -> &'static str {
    SERIES[number % SERIES.len()].0
}

/// Stops of a map from little to much, even for colour-blind readers (cividis; Nuñez, Anderton, Renslow 2018).
const STOPS: [[f64; 3]; 6] = [
    [0.0, 34.0, 78.0],
    [53.0, 69.0, 108.0],
    [102.0, 105.0, 112.0],
    [148.0, 142.0, 119.0],
    [200.0, 184.0, 102.0],
    [254.0, 232.0, 56.0],
];

/// Fill of a share from 0 to 1, and the class of a text on it.
pub fn heat(share: f64) -> (String, &'static str) {
    let place = share.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let at = (place.floor() as usize).min(STOPS.len() - 2);
    let part = place - at as f64;
    let mixed: Vec<u8> = (0..3)
        .map(|channel| (STOPS[at][channel] * (1.0 - part) + STOPS[at + 1][channel] * part).round() as u8)
        .collect();
    let fill = format!("#{:02x}{:02x}{:02x}", mixed[0], mixed[1], mixed[2]);
    let on_light = contrast(&fill, "#000000") > contrast(&fill, "#ffffff");
    (fill, if on_light { "dark" } else { "light" })
}

/// Relative luminance of `#rrggbb` (WCAG 2.2).
fn luminance(colour: &str) -> f64 {
    let channel = |at: usize| {
        let value =
            f64::from(colour.get(at..at + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok()).unwrap_or(0));
        let share = value / 255.0;
        if share <= 0.04045 { share / 12.92 } else { libm::pow((share + 0.055) / 1.055, 2.4) }
    };
    0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
}

/// Contrast of two colours, from 1 to 21 (WCAG 2.2).
pub fn contrast(a: &str, b: &str) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_marks_have_contrast_on_light_and_dark_pages() {
        assert!((contrast("#000000", "#ffffff") - 21.0).abs() < 1e-9);
        let (_, light, dark) = BASE[0];
        for (name, on_light, on_dark) in &BASE[1..3] {
            assert!(contrast(on_light, light) >= 4.5 && contrast(on_dark, dark) >= 4.5, "{name}");
            let (_, light_out, dark_out) = BASE[5];
            assert!(contrast(on_light, light_out) >= 4.5 && contrast(on_dark, dark_out) >= 4.5, "{name}");
        }
        for (name, on_light, on_dark) in SERIES {
            assert!(contrast(on_light, light) >= 4.0 && contrast(on_dark, dark) >= 4.0, "{name}");
        }
        for step in 0..=100 {
            let (fill, class) = heat(f64::from(step) / 100.0);
            let ink = if class == "dark" { "#000000" } else { "#ffffff" };
            assert!(contrast(&fill, ink) >= 4.5, "{step}: {fill}");
        }
    }

    #[test]
    fn every_colour_of_the_rules_is_in_the_table() {
        for theme in [SvgTheme::Adaptive, SvgTheme::Light] {
            assert!(!style(theme).contains('$'));
        }
        assert!(!style(SvgTheme::Light).contains("var("));
    }
}
