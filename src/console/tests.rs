//! Tests of the whole screen: snapshots of text and of styles, update tables, and properties over sizes, keys and hostile text.

use std::sync::Arc;

use proptest::prelude::*;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use rstest::rstest;
use unicode_width::UnicodeWidthStr;

use super::action::{Action, TABLE};
use super::app::{App, Effect, Overlay, Page};
use super::fixture;
use super::frame;
use super::keymap::{Chord, Key};
use super::scene::{Scene, Target};
use super::theme::{Charset, Depth, Theme};
use crate::model::finding::Finding;
use crate::model::service::RoleKind;
use crate::model::state::{EngineState, WorkloadState};
use crate::model::{Subject, unknown::unknown};

const COLOUR: Theme = Theme { depth: Depth::Sixteen, charset: Charset::Unicode };
const MONO: Theme = Theme { depth: Depth::None, charset: Charset::Ascii };

fn app(theme: Theme, size: (u16, u16)) -> App {
    let (world, findings) = fixture::incident();
    App::new(fixture::scene(world, findings), theme, size)
}

fn draw(app: &App) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, app.size.0, app.size.1));
    frame::draw(app, &mut buffer);
    buffer
}

fn text(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in 0..buffer.area.height {
        let mut line = String::new();
        let mut x = 0;
        while x < buffer.area.width {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            x += u16::try_from(symbol.width().max(1)).unwrap();
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Runs of cells that are not plain, a line each: `row: from-to style`.
fn styles(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in 0..buffer.area.height {
        let mut runs: Vec<(u16, u16, String)> = Vec::new();
        for x in 0..buffer.area.width {
            let style = style(&buffer[(x, y)]);
            match runs.last_mut() {
                Some((_, end, last)) if *last == style => *end = x,
                _ => runs.push((x, x, style)),
            }
        }
        let runs: Vec<String> =
            runs.into_iter().filter(|(.., style)| !style.is_empty()).map(|(from, to, style)| format!("{from}-{to} {style}")).collect();
        if !runs.is_empty() {
            out.push_str(&format!("{y}: {}\n", runs.join(", ")));
        }
    }
    out
}

fn style(cell: &Cell) -> String {
    let mut words = Vec::new();
    for (colour, ground) in [(cell.fg, "on"), (cell.bg, "bg")] {
        if colour != Color::Reset {
            words.push(format!("{ground}:{colour}").to_lowercase().replace("on:", ""));
        }
    }
    for (modifier, word) in
        [(Modifier::BOLD, "bold"), (Modifier::DIM, "dim"), (Modifier::UNDERLINED, "underlined"), (Modifier::REVERSED, "reversed")]
    {
        if cell.modifier.contains(modifier) {
            words.push(word.to_owned());
        }
    }
    words.join("+")
}

fn keys(app: &mut App, names: &str) -> Effect {
    let mut effect = Effect::None;
    for name in names.split(' ').filter(|name| !name.is_empty()) {
        effect = app.on_key(Chord::parse(name).unwrap());
    }
    effect
}

#[rstest]
fn looks(
    #[values((80, 24), (120, 40), (200, 50))] size: (u16, u16),
    #[values(("fleet", ""), ("model", "enter"), ("model-end", "enter G"), ("roles", "j enter"), ("help", "?"))] page: (&str, &str),
) {
    let (name, pressed) = page;
    let mut app = app(COLOUR, size);
    keys(&mut app, pressed);
    insta::assert_snapshot!(format!("{name}-{}x{}", size.0, size.1), text(&draw(&app)));
}

#[rstest]
fn looks_without_colour_in_ascii(#[values(("fleet", ""), ("model", "enter"), ("help", "?"))] page: (&str, &str)) {
    let (name, pressed) = page;
    let mut app = app(MONO, (80, 24));
    keys(&mut app, pressed);
    let buffer = draw(&app);
    assert!(buffer.content.iter().all(|cell| cell.symbol().is_ascii()));
    insta::assert_snapshot!(format!("{name}-mono-80x24"), format!("{}\n{}", text(&buffer), styles(&buffer)));
}

#[rstest]
fn colours(#[values(("fleet", ""), ("model", "enter"))] page: (&str, &str)) {
    let (name, pressed) = page;
    let mut app = app(COLOUR, (120, 40));
    keys(&mut app, pressed);
    insta::assert_snapshot!(format!("{name}-styles-120x40"), styles(&draw(&app)));
}

#[test]
fn looks_of_the_rest() {
    let mut empty = App::new(fixture::scene(fixture::empty(), Vec::new()), COLOUR, (80, 24));
    insta::assert_snapshot!("empty-80x24", text(&draw(&empty)));
    keys(&mut empty, "enter 2 G j ? p esc");
    let (world, findings, title) = fixture::hostile(fixture::HOSTILE.concat().as_str());
    let mut hostile = App::new(Scene::new(Arc::new(world), findings, title), COLOUR, (100, 30));
    insta::assert_snapshot!("hostile-fleet-100x30", text(&draw(&hostile)));
    keys(&mut hostile, "enter");
    insta::assert_snapshot!("hostile-model-100x30", text(&draw(&hostile)));
    let mut filtered = app(COLOUR, (80, 24));
    keys(&mut filtered, "/ d e c");
    insta::assert_snapshot!("filter-80x24", text(&draw(&filtered)));
    let mut problems = app(COLOUR, (80, 24));
    keys(&mut problems, "p");
    insta::assert_snapshot!("problems-80x24", text(&draw(&problems)));
    let mut engine = app(COLOUR, (80, 24));
    keys(&mut engine, "G enter");
    insta::assert_snapshot!("engine-80x24", text(&draw(&engine)));
    insta::assert_snapshot!("too-small", text(&draw(&app(COLOUR, (20, 5)))));
    insta::assert_snapshot!("least-40x10", text(&draw(&app(COLOUR, frame::LEAST))));
}

#[rstest]
fn without_colour_no_cell_has_one(#[values("", "enter", "?", "p", "/ q", ":")] pressed: &str) {
    let mut app = app(MONO, (120, 40));
    keys(&mut app, pressed);
    for cell in &draw(&app).content {
        assert_eq!((cell.fg, cell.bg), (Color::Reset, Color::Reset));
    }
}

/// What a state is to the eye must not hang on colour alone: without colour the words and marks are all there.
#[test]
fn colour_adds_nothing_that_words_do_not_say() {
    let unicode = Theme { depth: Depth::None, charset: Charset::Unicode };
    for pressed in ["", "enter"] {
        let (mut with, mut without) = (app(COLOUR, (120, 40)), app(unicode, (120, 40)));
        keys(&mut with, pressed);
        keys(&mut without, pressed);
        assert_eq!(text(&draw(&with)), text(&draw(&without)));
    }
}

#[rstest]
#[case("", Page::Fleet, Effect::None)]
#[case("enter", Page::Model, Effect::None)]
#[case("enter esc", Page::Fleet, Effect::None)]
#[case("enter backspace", Page::Fleet, Effect::None)]
#[case("tab", Page::Model, Effect::None)]
#[case("tab tab", Page::Fleet, Effect::None)]
#[case("2", Page::Model, Effect::None)]
#[case("2 1", Page::Fleet, Effect::None)]
#[case("enter enter", Page::Model, Effect::None)]
#[case("esc esc", Page::Fleet, Effect::None)]
#[case("q", Page::Fleet, Effect::Quit)]
#[case("enter q", Page::Model, Effect::Quit)]
#[case("? q", Page::Fleet, Effect::None)]
#[case("? q q", Page::Fleet, Effect::Quit)]
#[case("? ctrl-c", Page::Fleet, Effect::Quit)]
#[case("/ q", Page::Fleet, Effect::None)]
#[case("/ ctrl-c", Page::Fleet, Effect::Quit)]
#[case(": q enter", Page::Fleet, Effect::Quit)]
#[case(": m o d e l enter", Page::Model, Effect::None)]
#[case(": q esc", Page::Fleet, Effect::None)]
#[case(": enter", Page::Fleet, Effect::None)]
#[case(": backspace q", Page::Fleet, Effect::Quit)]
#[case("ctrl-z", Page::Fleet, Effect::Suspend)]
#[case("/ ctrl-z", Page::Fleet, Effect::Suspend)]
#[case("ctrl-l", Page::Fleet, Effect::Redraw)]
#[case("x ctrl-x Z ! ~", Page::Fleet, Effect::None)]
fn keys_and_pages(#[case] pressed: &str, #[case] page: Page, #[case] effect: Effect) {
    let mut app = app(COLOUR, (80, 24));
    assert_eq!(keys(&mut app, pressed), effect);
    assert_eq!(app.page, page);
}

#[rstest]
#[case("", 0)]
#[case("j", 1)]
#[case("down down", 2)]
#[case("j j k", 1)]
#[case("k", 0)]
#[case("G", 4)]
#[case("G g", 0)]
#[case("j j j j j j j j", 4)]
#[case("pgdn", 4)]
#[case("pgdn pgup", 0)]
#[case("ctrl-d", 4)]
#[case("end home", 0)]
fn keys_and_selection(#[case] pressed: &str, #[case] place: usize) {
    let mut app = app(COLOUR, (80, 24));
    keys(&mut app, pressed);
    assert_eq!(app.place(), Some(place));
}

#[test]
fn a_filter_narrows_while_typed_is_kept_by_enter_and_undone_by_esc() {
    let mut app = app(COLOUR, (80, 24));
    keys(&mut app, "/ d e e p");
    assert_eq!(app.fleet.shown.len(), 2);
    keys(&mut app, "backspace");
    assert_eq!(app.fleet.filter, "dee");
    keys(&mut app, "enter / x x x");
    assert_eq!((app.fleet.shown.len(), &app.fleet.selected), (0, &None));
    assert_eq!(keys(&mut app, "down up"), Effect::None);
    keys(&mut app, "esc");
    assert_eq!((app.fleet.filter.as_str(), app.fleet.shown.len()), ("dee", 2));
    assert!(app.fleet.selected.is_some());
    keys(&mut app, "esc");
    assert_eq!((app.fleet.filter.as_str(), app.fleet.shown.len()), ("", 5));
    keys(&mut app, "/ H U N G");
    assert_eq!(app.fleet.shown.len(), 1, "codes of findings are looked at, in any case");
}

#[test]
fn an_action_that_can_not_be_done_says_why_and_does_nothing() {
    let mut app = app(COLOUR, (80, 24));
    keys(&mut app, "enter");
    keys(&mut app, "/");
    assert_eq!(app.prompt, None);
    assert_eq!(app.notice.as_deref(), Some("filter: only on the Fleet page: 1"));
    keys(&mut app, "j");
    assert_eq!(app.notice, None);
    keys(&mut app, ": n o n s e n s e enter");
    assert_eq!(app.notice.as_deref(), Some("no such command: nonsense"));
    let mut empty = App::new(fixture::scene(fixture::empty(), Vec::new()), COLOUR, (80, 24));
    keys(&mut empty, "enter");
    assert_eq!((empty.page, empty.notice.as_deref()), (Page::Fleet, Some("open: there is no row to open")));
    keys(&mut empty, "p");
    assert_eq!((empty.overlay, empty.notice.as_deref()), (None, Some("inputs: every input could be read")));
}

#[test]
fn overlays_scroll_and_close() {
    let mut app = app(COLOUR, (80, 12));
    keys(&mut app, "? j j");
    assert_eq!(app.overlay, Some((Overlay::Help, 2)));
    keys(&mut app, "g k");
    assert_eq!(app.overlay, Some((Overlay::Help, 0)));
    keys(&mut app, "G");
    let (_, end) = app.overlay.unwrap();
    keys(&mut app, "j pgdn");
    assert_eq!(app.overlay, Some((Overlay::Help, end)));
    keys(&mut app, "p");
    assert_eq!(app.overlay, Some((Overlay::Problems, 0)));
    keys(&mut app, "p");
    assert_eq!(app.overlay, None);
}

#[test]
fn worst_stands_first_and_the_selection_stays_on_its_row() {
    let mut app = app(COLOUR, (80, 24));
    let first = app.fleet.selected.clone().unwrap();
    assert_eq!(first.target, Target::Service(fixture::id("serving", "qwen-a")));
    keys(&mut app, "s");
    assert_eq!(app.fleet.selected, Some(first.clone()));
    assert_ne!(app.place(), Some(0), "by name batch/tiny comes first");
    let (mut world, findings) = fixture::incident();
    world.services.remove(&fixture::id("batch", "tiny"));
    app.replace_scene(fixture::scene(world, findings));
    assert_eq!(app.fleet.selected, Some(first));
    let (mut world, findings) = fixture::incident();
    world.services.remove(&fixture::id("serving", "qwen-a"));
    app.replace_scene(fixture::scene(world, findings));
    assert!(app.fleet.selected.is_some());
}

#[test]
fn a_service_that_vanishes_while_it_is_open_says_so() {
    let mut app = app(COLOUR, (80, 24));
    keys(&mut app, "enter");
    app.replace_scene(fixture::scene(fixture::empty(), Vec::new()));
    assert!(text(&draw(&app)).contains("is not there any more"));
}

#[test]
fn findings_are_shown_with_the_rows_they_are_about() {
    let (world, findings) = fixture::incident();
    let scene = fixture::scene(world, findings);
    let codes = |name: &str, role: usize| -> Vec<&str> {
        let row = scene.rows().iter().find(|row| row.target == Target::Service(fixture::id("serving", name)) && row.role == role).unwrap();
        scene.about_row(row).map(|finding: &Finding| finding.code.word()).collect()
    };
    assert_eq!(codes("qwen-a", 0), ["engine-hung"]);
    // An HPA is the service's own: each role shows what is wrong with it.
    assert_eq!(codes("deepseek-v4", 0), ["scale-up-lost"]);
    assert_eq!(codes("deepseek-v4", 1), ["scale-up-lost"]);
    let engines: Vec<_> = scene.rows().iter().filter(|row| matches!(row.target, Target::Engine(_))).collect();
    assert_eq!(engines.len(), 1, "engines of replicas have no row of their own");
}

#[test]
fn a_finding_on_a_part_is_about_the_whole() {
    let (world, mut findings) = fixture::incident();
    findings[0].subjects = vec![Subject::object("Deployment", "serving", "qwen-a").part("group/0")];
    let scene = fixture::scene(world, findings);
    assert_eq!(scene.about(&Target::Service(fixture::id("serving", "qwen-a"))).count(), 2);
}

/// The rule behind everything: what is not known is never a 0.
#[test]
fn unknown_values_are_shown_as_unknown_with_their_reason() {
    let mut world = fixture::empty();
    let id = fixture::id("s", "m");
    let mut replica = fixture::replica(&id, "m-0", crate::model::state::ReplicaState::Unknown);
    replica.pod_ready = unknown("REASON-READY");
    replica.listing.listed = unknown("REASON-LISTED");
    replica.engine = unknown("REASON-ENGINE");
    let funnel = crate::model::funnel::Funnel::unknown("REASON-FUNNEL");
    fixture::add(&mut world, &id, WorkloadState::Unknown, vec![(RoleKind::Aggregate, funnel, WorkloadState::Unknown, vec![replica])]);
    let mut app = App::new(fixture::scene(world, Vec::new()), COLOUR, (140, 45));
    let fleet = text(&draw(&app));
    assert!(fleet.contains("REASON-FUNNEL") && fleet.contains("–/–"), "{fleet}");
    let row = fleet.lines().find(|line| line.contains("s/m ")).unwrap();
    assert!(!row.contains('0'), "{row}");
    keys(&mut app, "enter");
    let model = text(&draw(&app));
    for reason in ["REASON-READY", "REASON-LISTED", "REASON-ENGINE", "REASON-FUNNEL"] {
        assert!(model.contains(reason), "{reason}\n{model}");
    }
}

/// No finding is no all-clear: the sentence at the top is about what does not serve.
#[test]
fn a_service_that_is_down_without_a_finding_is_no_good_news() {
    let (world, _) = fixture::incident();
    let page = text(&draw(&App::new(fixture::scene(world, Vec::new()), COLOUR, (120, 40))));
    let top = page.lines().nth(1).unwrap();
    assert!(top.contains("✖ serving/deepseek-v4 prefill is DOWN"), "{top}");
    let mut world = fixture::empty();
    let id = fixture::id("s", "m");
    let all = fixture::funnel([1; 7], 1, "spec.replicas");
    fixture::add(&mut world, &id, WorkloadState::Serving, vec![(RoleKind::Aggregate, all, WorkloadState::Serving, Vec::new())]);
    let page = text(&draw(&App::new(fixture::scene(world.clone(), Vec::new()), COLOUR, (120, 40))));
    assert!(page.contains("1 model seen, and none of their replicas was read"), "{page}");
    world.problems.push(crate::world::InputProblem { place: "a".into(), what: "b".into(), about: None });
    let page = text(&draw(&App::new(fixture::scene(world, Vec::new()), COLOUR, (120, 40))));
    assert!(page.contains("▲ no finding, but 1 input could not be read whole"), "{page}");
}

#[test]
fn a_sum_over_some_replicas_says_that_it_is_a_lower_bound() {
    let page = text(&draw(&app(COLOUR, (200, 50))));
    let row = page.lines().find(|line| line.contains("decode")).unwrap();
    assert!(row.contains("≥6"), "{row}");
}

#[test]
fn the_two_answers_stand_apart() {
    let mut app = app(COLOUR, (160, 60));
    keys(&mut app, "enter");
    let page = text(&draw(&app));
    let row = page.lines().find(|line| line.contains("2xkqv") && line.contains("yes")).unwrap();
    let (ready, says) = (row.find("yes").unwrap(), row.rfind("STALLED").unwrap());
    assert!(ready < says, "pod Ready and the engine's word are two columns: {row}");
}

/// Only what is in sight is built: a fleet of many thousand rows draws as one of a few.
#[test]
fn a_large_fleet_scrolls_to_its_end() {
    let mut world = fixture::empty();
    for n in 0..5000 {
        let engine = Subject::engine(&format!("e{n:04}"));
        world.engines.insert(engine.clone(), fixture::report(&engine, EngineState::Ready, "ok", unknown("none")));
    }
    let mut app = App::new(fixture::scene(world, Vec::new()), COLOUR, (80, 24));
    keys(&mut app, "G");
    let page = text(&draw(&app));
    assert!(page.contains("engine/e4999") && page.contains("5000 of 5000"), "{page}");
    keys(&mut app, "k k g");
    assert!(text(&draw(&app)).contains("engine/e0000"));
}

fn harmless(buffer: &Buffer) -> Result<(), String> {
    let area = buffer.area;
    for y in 0..area.height {
        let mut x = 0;
        while x < area.width {
            let symbol = buffer[(x, y)].symbol();
            let wide = symbol.width();
            let bad = |c: char| {
                c.is_control()
                    || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{61c}')
                    || matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}' | '\u{ad}')
            };
            if symbol.chars().any(bad)
                || symbol.chars().count() > 3
                || !(1..=2).contains(&wide)
                || usize::from(x) + wide > usize::from(area.width)
            {
                return Err(format!("{x},{y}: {symbol:?}"));
            }
            x += u16::try_from(wide).unwrap();
        }
    }
    Ok(())
}

#[test]
fn hostile_text_leaves_only_harmless_cells() {
    for hostile in fixture::HOSTILE {
        for theme in [COLOUR, MONO] {
            let (world, findings, title) = fixture::hostile(hostile);
            let mut app = App::new(Scene::new(Arc::new(world), findings, title), theme, (93, 31));
            for pressed in ["", "j", "?", "esc p", "esc / a", "esc 2", "pgdn", "G", "1 G 2"] {
                keys(&mut app, pressed);
                harmless(&draw(&app)).unwrap();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// No size and no sequence of keys fails, and nothing harmful is ever drawn.
    #[test]
    fn any_size_and_any_keys(
        sizes in proptest::collection::vec((0u16..=300, 0u16..=100), 1..4),
        pressed in proptest::collection::vec(0usize..40, 0..24),
        hostile in 0usize..8,
        mono in any::<bool>(),
    ) {
        let theme = if mono { MONO } else { COLOUR };
        let scene = match fixture::HOSTILE.get(hostile) {
            Some(text) => {
                let (world, findings, title) = fixture::hostile(text);
                Scene::new(Arc::new(world), findings, title)
            }
            None => {
                let (world, findings) = fixture::incident();
                fixture::scene(world, findings)
            }
        };
        let mut app = App::new(scene, theme, sizes[0]);
        let all: Vec<Chord> = TABLE.iter().flat_map(|entry| entry.keys).filter_map(|name| Chord::parse(name)).collect();
        for (n, key) in pressed.iter().enumerate() {
            app.on_key(all.get(*key).copied().unwrap_or(Chord::of('模')));
            app.resize(sizes[n % sizes.len()]);
            let buffer = draw(&app);
            prop_assert!(harmless(&buffer).is_ok(), "{:?}", harmless(&buffer));
            prop_assert!(buffer.area.width < frame::LEAST.0 || app.place().is_none_or(|place| place >= app.fleet.offset));
        }
        harmless(&draw(&app)).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn any_text(text in any::<String>(), typed in any::<String>(), width in 40u16..140) {
        let (world, findings, title) = fixture::hostile(&text);
        let mut app = App::new(Scene::new(Arc::new(world), findings, title), COLOUR, (width, 40));
        harmless(&draw(&app)).map_err(TestCaseError::fail)?;
        app.update(Action::Open);
        harmless(&draw(&app)).map_err(TestCaseError::fail)?;
        app.update(Action::Fleet);
        app.update(Action::Filter);
        for c in typed.chars() {
            app.on_key(Chord::of(c));
        }
        harmless(&draw(&app)).map_err(TestCaseError::fail)?;
        app.on_key(Chord::key(Key::Enter));
        harmless(&draw(&app)).map_err(TestCaseError::fail)?;
    }
}
