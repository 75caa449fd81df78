//! The pages on every recorded case: whatever a bundle holds, it draws at each size, names what it shows, and harms no terminal.
#![cfg(feature = "tui")]
// The whole file is a test, its helpers too.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use modeldeck::console::action::Action;
use modeldeck::console::app::{App, Page};
use modeldeck::console::theme::{Charset, Depth, Theme};
use modeldeck::console::{Scene, frame};
use modeldeck::diagnose::diagnose;
use modeldeck::sources::bundle;
use modeldeck::world::World;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

const THEME: Theme = Theme { depth: Depth::Indexed, charset: Charset::Unicode };

fn cases() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cases");
    let mut cases: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    cases.sort();
    cases
}

fn scene(case: &Path) -> Scene {
    let bundle = bundle::read(case, None).unwrap();
    let world = World::build(bundle.facts, "bundle", bundle.now);
    let findings = diagnose(&world);
    Scene::new(Arc::new(world), findings, case.file_name().unwrap().to_string_lossy())
}

fn draw(app: &App) -> String {
    let mut buffer = Buffer::empty(Rect::new(0, 0, app.size.0, app.size.1));
    frame::draw(app, &mut buffer);
    let width = usize::from(app.size.0.max(1));
    let lines = buffer.content.chunks(width).map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>());
    lines.map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Every line of the open page, from the top to the end.
fn whole(app: &mut App) -> String {
    app.update(Action::Top);
    let mut text = draw(app);
    for _ in 0..500 {
        app.update(Action::PageDown);
        let next = draw(app);
        if text.ends_with(&next) {
            break;
        }
        text.push_str(&next);
    }
    text
}

#[test]
fn each_case_is_drawn_whole() {
    let cases = cases();
    assert!(cases.len() > 30);
    for case in cases {
        let scene = scene(&case);
        for size in [(80, 24), (120, 40), (200, 50)] {
            let mut app = App::new(scene.clone(), THEME, size);
            let fleet = whole(&mut app);
            assert!(!fleet.chars().any(|c| c.is_control() && c != '\n'), "{}", case.display());
            if let Some(worst) = scene.findings.first() {
                let word = worst.summary.split(' ').next().unwrap();
                assert!(fleet.contains(word), "{}: {word}\n{fleet}", case.display());
            }
            app.update(Action::Top);
            for _ in 0..scene.rows().len() {
                app.update(Action::Open);
                assert_eq!(app.page, Page::Model);
                let model = whole(&mut app);
                assert!(!model.contains("is not there any more"), "{}", case.display());
                app.update(Action::Fleet);
                app.update(Action::Down);
            }
        }
    }
}

/// The question of the first case: which replicas are really serving?
#[test]
fn a_silent_engine_is_seen_at_a_glance() {
    let mut app = App::new(scene(&cases()[0]), THEME, (120, 40));
    let fleet = draw(&app);
    let row = fleet.lines().find(|line| line.contains("qwen-a")).unwrap();
    assert!(fleet.contains("1/2") && fleet.contains("engine-hung"), "{row}\n{fleet}");
    app.update(Action::Open);
    let model = whole(&mut app);
    let line = |name: &str| model.lines().find(|line| line.contains(name) && line.contains("yes")).unwrap().to_owned();
    assert!(line("2xkqv").contains("STALLED"), "{model}");
    assert!(line("9dl4m").contains("SERVING"), "{model}");
}
