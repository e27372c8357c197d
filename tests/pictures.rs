//! Pictures: whatever the data, they are well-formed, finite, inside their view, and escape what comes from outside.

mod pixels;

use mantile::report::comparison::SHOWN;
use mantile::report::svg::bars::{LabelledBar, bars, shares};
use mantile::report::svg::compare::comparison_picture;
use mantile::report::svg::deployment::{estimate_picture, optimize_picture};
use mantile::report::svg::fleet::fleet_picture;
use mantile::report::svg::heat::HeatMap;
use mantile::report::svg::lines::{LinePoint, PlotLine, lines};
use mantile::report::svg::palette::SvgTheme;
use mantile::report::svg::place::place_picture;
use mantile::report::svg::static_batch::static_picture;
use mantile::report::svg::sweep::sweep_picture;
use mantile::report::svg::tornado::audit_picture;
use mantile::report::svg::why::why_panels;
use mantile::report::svg::{SvgPanel, SvgPicture, side_by_side};
use mantile::request::UNCONTROLLED;
use mantile::request::audit::{AuditRequest, audit};
use mantile::request::compare::{CompareRequest, compare};
use mantile::request::estimate::{EstimateRequest, estimate};
use mantile::request::fleet::{FleetRequest, fleet};
use mantile::request::optimize::{OptimizeRequest, optimize};
use mantile::request::place::{PlaceRequest, place};
use mantile::request::static_batch::{StaticRequest, static_batch};
use mantile::request::sweep::{SweepRequest, sweep};
use mantile::request::timeline::given_timeline;
use mantile::spec::objective::Metric;
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;
use mantile::store::png::png;
use proptest::prelude::*;
use resvg::tiny_skia::Pixmap;
use roxmltree::{Document, Node};

/// Numbers of an attribute.
fn number(node: &Node, name: &str) -> Option<f64> {
    node.attribute(name).map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

/// Sum of the translations of a node and those around it.
fn shift(node: &Node) -> [f64; 2] {
    let of = |node: Node| {
        let text = node.attribute("transform")?.strip_prefix("translate(")?.strip_suffix(')')?;
        let (x, y) = text.split_once(',').unwrap();
        Some([x.parse::<f64>().unwrap(), y.parse::<f64>().unwrap()])
    };
    let all = node.ancestors().filter_map(of);
    all.fold([0.0, 0.0], |sum, shift| [sum[0] + shift[0], sum[1] + shift[1]])
}

/// Corners of an element's box, as far as its attributes give them in absolute numbers.
fn places(node: &Node) -> Vec<[f64; 2]> {
    let of = |names: [&str; 2]| Some([number(node, names[0])?, number(node, names[1])?]);
    let mut found: Vec<[f64; 2]> =
        [["x", "y"], ["cx", "cy"], ["x1", "y1"], ["x2", "y2"]].into_iter().filter_map(of).collect();
    if let (Some([x, y]), Some([width, height])) = (of(["x", "y"]), of(["width", "height"])) {
        assert!(width >= 0.0 && height >= 0.0);
        found.push([x + width, y + height]);
    }
    if node.tag_name().name() == "path" {
        let d = node.attribute("d").unwrap();
        for step in d.split(['M', 'L']).skip(1) {
            let end = step.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(step.len());
            let mut numbers = step[..end].split(' ').filter(|text| !text.is_empty());
            let mut next = || numbers.next().unwrap().parse::<f64>().unwrap();
            found.push([next(), next()]);
        }
    }
    found
}

/// Checks a picture and returns the number of its titled marks.
fn checked(picture: &SvgPicture) -> usize {
    let html = picture.html();
    assert!(html.contains("<svg") && !html.contains("<script"), "a page without script");
    for theme in [SvgTheme::Adaptive, SvgTheme::Light] {
        let svg = picture.svg(theme);
        assert!(!svg.contains("NaN") && !svg.contains("inf,") && !svg.contains("\"inf"), "{svg}");
        Document::parse(&svg).unwrap();
    }
    let svg = picture.svg(SvgTheme::Light);
    let document = Document::parse(&svg).unwrap();
    let root = document.root_element();
    let view: Vec<f64> =
        root.attribute("viewBox").unwrap().split(' ').map(|text| text.parse().unwrap()).collect();
    let drawn =
        root.descendants().filter(|node| node.is_element() && node.attribute("width") != Some("100%"));
    let mut titled = 0;
    for node in drawn.filter(|node| node.tag_name().name() != "svg") {
        let [x, y] = shift(&node);
        for place in places(&node) {
            let [x, y] = [place[0] + x, place[1] + y];
            assert!(
                x >= -0.1 && x <= view[2] + 0.1 && y >= -0.1 && y <= view[3] + 0.1,
                "{x} {y} in {view:?}: {}",
                node.tag_name().name()
            );
        }
        titled += usize::from(node.children().any(|child| child.tag_name().name() == "title"));
    }
    titled
}

fn picture(panels: Vec<SvgPanel>, name: &str) -> SvgPicture {
    SvgPicture { title: name.to_owned(), subtitle: name.to_owned(), panels }
}

/// Numbers of every size, and what is none.
fn figure() -> impl Strategy<Value = f64> {
    prop_oneof![4 => -1e3..1e6f64, 1 => any::<f64>(), 1 => (-200.0..200.0f64).prop_map(|power| 10f64.powf(power))]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lines_of_any_numbers_are_inside_their_view(
        rows in prop::collection::vec((".{0,60}", prop::collection::vec((figure(), prop::option::of(figure()), prop::option::of((figure(), figure()))), 0..9)), 1..9),
    ) {
        let line = |(name, points): &(String, Vec<(f64, Option<f64>, Option<(f64, f64)>)>)| PlotLine {
            name: name.clone(),
            points: points.iter().map(|(x, y, ends)| LinePoint { x: *x, y: *y, ends: *ends, title: name.clone() }).collect(),
        };
        let all: Vec<PlotLine> = rows.iter().map(line).collect();
        if let Some(panel) = lines(&rows[0].0, ["x", "y"], &all) {
            checked(&picture(vec![side_by_side(&[panel.clone(), panel], 2)], &rows[0].0));
        }
    }

    #[test]
    fn bars_and_maps_of_any_numbers_are_inside_their_view(
        rows in prop::collection::vec((".{0,60}", prop::collection::vec(figure(), 3..4)), 1..12),
    ) {
        let bar = |(name, parts): &(String, Vec<f64>)| LabelledBar {
            label: name.clone(),
            parts: parts.iter().enumerate().map(|(at, length)| (at, *length, name.clone())).collect(),
            note: name.chars().take(12).collect(),
        };
        let all: Vec<LabelledBar> = rows.iter().map(bar).collect();
        checked(&picture(vec![bars("t", &[(0, "a")], &all), shares("t", &[], &all)], &rows[0].0));
        let names: Vec<String> = rows.iter().map(|(name, _)| name.clone()).collect();
        let map = HeatMap {
            title: names[0].clone(),
            across: ("x".into(), vec!["a".into(), "b".into(), "c".into()]),
            up: ("y".into(), names.clone()),
            cells: rows.iter().map(|(name, row)| row.iter().map(|v| (Some(*v), name.clone())).collect()).collect(),
        };
        checked(&picture(map.panel().into_iter().collect(), &rows[0].0));
    }
}

#[test]
fn pictures_of_answers_have_a_titled_mark_for_every_figure() {
    let catalog = Catalog::default();
    let scenario = Scenario::of("Llama-3.1-8B", "4xh100");
    let request = OptimizeRequest { scenario: scenario.clone(), ..OptimizeRequest::default() };
    let answer = optimize(&catalog, &request, &UNCONTROLLED).unwrap();
    let marks = checked(&optimize_picture(&answer));
    assert!(marks > answer.front.len() + 10, "{marks} marks for {} points", answer.front.len());
    let mut given = scenario.clone();
    given.deployment =
        serde_json::from_value(serde_json::json!({"plan": "prefill 1 x tp1, decode 1 x tp2"})).unwrap();
    let found = estimate(&catalog, &EstimateRequest::of(given), &UNCONTROLLED).unwrap();
    assert!(checked(&estimate_picture(&found, None)) > 15);
    let given = found.scenario.clone().unwrap();
    let steps = given_timeline(&catalog, &given).unwrap();
    let marks = checked(&estimate_picture(&found, Some(&steps)));
    assert!((200..20_000).contains(&marks), "{marks} marks");
    let report = audit(&catalog, &AuditRequest { scenario: given }, &UNCONTROLLED).unwrap();
    assert!(checked(&audit_picture(&report)) > 20);
    for (vary, metric, least) in [
        (vec!["tp=1,2,4", "concurrency=1..64*2"], None, 21),
        (vec!["concurrency=1..64*2"], None, 28),
        (vec!["tp=1,2,3"], Some(Metric::Tpot), 3),
        (vec!["weight_format=bf16,fp8", "kv_format=bf16,fp8", "tp=2"], None, 12),
    ] {
        let vary = vary.into_iter().map(str::to_owned).collect();
        let request = SweepRequest { scenario: scenario.clone(), vary, shard: None, traffic: None };
        let report = sweep(&catalog, &request, &UNCONTROLLED).unwrap();
        let marks = checked(&sweep_picture(&report, metric));
        assert!(marks >= least, "{marks} marks: {:?}", request.vary);
    }
}

/// Every request with a picture has one that holds each of its rows.
#[test]
fn pictures_of_other_answers_have_a_titled_mark_for_every_row() {
    let catalog = Catalog::default();
    let model = Scenario { model: Some("Llama-3.1-8B".into()), ..Scenario::default() };
    let hardware = vec!["1xh100".to_owned(), "1xl40s".into(), "1xmi300x".into()];
    let request = CompareRequest { hardware, scenario: model.clone(), ..CompareRequest::default() };
    let compared = compare(&catalog, &request, &UNCONTROLLED).unwrap();
    assert_eq!(checked(&comparison_picture(&compared)), SHOWN.len() * compared.rows.len());

    let offers = ["1xh100", "1xl40s"].map(str::to_owned).to_vec();
    let request = FleetRequest { model: model.model.clone(), offers, ..FleetRequest::default() };
    let found = fleet(&catalog, &request, &UNCONTROLLED).unwrap();
    let buckets = found.costs.as_ref().unwrap().buckets.len();
    let least = 2 * found.systems.len() + found.routes.len() + 2 * buckets;
    assert!(checked(&fleet_picture(&found)) >= least);
    let request = FleetRequest { max_devices: Some(1), ..request };
    assert!(fleet_picture(&fleet(&catalog, &request, &UNCONTROLLED).unwrap()).is_empty());

    let scenario = Scenario::of("Qwen3-30B-A3B", "1xh100");
    let request = StaticRequest { scenario: scenario.clone(), ..StaticRequest::default() };
    let batch = static_batch(&catalog, &request, &UNCONTROLLED).unwrap();
    assert!(checked(&static_picture(&batch)) >= 20);

    let request = OptimizeRequest {
        scenario,
        why: true,
        max_front_points: Some(0.into()),
        ..OptimizeRequest::default()
    };
    let answer = optimize(&catalog, &request, &UNCONTROLLED).unwrap();
    let why = answer.why.as_ref().unwrap();
    let panels = picture(why_panels(why), "why");
    assert_eq!(panels.panels.len(), 3);
    assert!(checked(&panels) >= why.strategies.iter().filter(|one| one.value.is_some()).count() + 3);
}

/// A PNG has the size of the picture, twice as fine, and its texts are drawn.
#[test]
fn a_png_shows_the_texts_of_its_picture() {
    let panel = |words: &str| picture(vec![bars(words, &[], &[])], words).svg(SvgTheme::Light);
    let drawn = |words: &str| png(&panel(words)).map(|bytes| Pixmap::decode_png(&bytes).unwrap());
    let (with, without) = match (drawn("words"), drawn("")) {
        (Ok(with), Ok(without)) => (with, without),
        (Err(fault), _) | (_, Err(fault)) if std::env::var_os("CI").is_none() => {
            eprintln!("SKIPPED: {fault}");
            return;
        }
        (Err(fault), _) | (_, Err(fault)) => panic!("{fault}"),
    };
    let dark = |pixels: &Pixmap| pixels.pixels().iter().filter(|pixel| pixel.red() < 128).count();
    assert!(dark(&with) > 200 && dark(&without) == 0, "{} and {}", dark(&with), dark(&without));
    let svg = panel("words");
    let width: u32 = svg.split(" width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
    assert_eq!(with.width(), 2 * width);
}

/// A box for every device, a link between all neighbouring stages, and the slowest link marked.
#[test]
fn placements_are_drawn_with_every_device() {
    for (model, hardware, most) in [
        ("Llama-3.1-8B", "rtx-4090-3090", 8),
        ("gpt-oss-120b", "mac-five", 40),
        ("Llama-3.3-70B", "spark-mac-studio", 8),
    ] {
        let mut request = PlaceRequest::default();
        (request.scenario.model, request.scenario.hardware) = (Some(model.into()), Some(hardware.into()));
        let answer = place(&Catalog::default(), &request, &UNCONTROLLED).unwrap();
        let found = answer.placement.as_ref().unwrap();
        let picture = place_picture(&answer);
        let svg = picture.svg(SvgTheme::Light);
        assert_eq!(svg.matches("class=\"box\"").count(), found.stages.len(), "{model}");
        assert_eq!(svg.matches("class=\"unused\"").count(), found.unused.len(), "{model}");
        assert_eq!(svg.matches("class=\"line s").count(), found.stages.len() - 1, "{model}");
        assert_eq!(svg.contains("class=\"line s1\""), found.stages.iter().any(|stage| stage.send_ms > 0.0));
        assert!(checked(&picture) <= most, "{model}");
        // The results of a whole prompt take longer to send than those of one token.
        for stage in &found.stages {
            let prompt = stage.prefill_send_ms;
            assert!(stage.send_ms <= prompt && prompt < stage.prefill_ms, "{model}: {prompt} ms");
        }
    }
}

#[test]
fn names_from_outside_are_texts() {
    let hostile = "</title><script>alert(1)</script>\u{202e}&\"<";
    let line = PlotLine {
        name: hostile.into(),
        points: vec![LinePoint { x: 1.0, y: Some(2.0), ends: None, title: hostile.into() }],
    };
    let panel = lines(hostile, [hostile; 2], &[line]).unwrap();
    let picture = picture(vec![panel], hostile);
    checked(&picture);
    assert!(!picture.html().contains('\u{202e}'));
}
