//! The funnel drawn step by step: a bar a step, the drop marked, beside it who sleeps, leaves or loads.

use crate::console::theme::{Role, Theme};
use crate::console::widgets::document::{Document, Line};
use crate::console::words;
use crate::model::Known;
use crate::model::funnel::{Funnel, Step};
use crate::model::service;

/// Columns that a funnel needs to be read.
const LEAST: usize = 38;
/// Columns beyond which a bar says no more.
const MOST: usize = 64;

/// The funnels of these roles, side by side as far as there is room.
pub(crate) fn draw(roles: &[service::Role], columns: usize, document: &mut Document, theme: Theme) {
    let per_line = (columns / LEAST).max(1);
    let wide = (columns / per_line.min(roles.len().max(1))).min(MOST);
    for group in roles.chunks(per_line) {
        let blocks: Vec<Vec<Line>> = group.iter().map(|role| block(role, wide, theme)).collect();
        let height = blocks.iter().map(Vec::len).max().unwrap_or(0);
        for y in 0..height {
            let mut line = Line::default();
            for (at, block) in blocks.iter().enumerate() {
                line = line.pad_to(at * wide, theme);
                if let Some(part) = block.get(y) {
                    line = line.join(part.clone());
                }
            }
            document.push(line);
        }
    }
}

fn block(role: &service::Role, columns: usize, theme: Theme) -> Vec<Line> {
    let funnel = &role.funnel;
    let mut lines = Vec::with_capacity(Step::ALL.len() + 3);
    let by = if funnel.wanted_by.is_empty() { String::new() } else { format!("  wanted by {}", funnel.wanted_by) };
    let head = role.kind.to_string();
    lines.push(Line::indented(1).field(&head, head.len().min(columns / 2), false, Role::Text, theme).field(
        &by,
        columns.saturating_sub(head.len().min(columns / 2) + 2),
        false,
        Role::Dim,
        theme,
    ));
    let most = Step::ALL.into_iter().filter_map(|step| funnel.step(step).as_ref().ok()).copied().max().unwrap_or(0);
    let drop = funnel.bottleneck();
    // Indent, name, count, a blank on each side, and "◀ 999 lost".
    let room = columns.saturating_sub(1 + 9 + 1 + 4 + 1 + 12);
    let mut above = None;
    for step in Step::ALL {
        let count = funnel.step(step);
        let lost = above.zip(count.as_ref().ok()).map_or(0, |(above, here): (u32, &u32)| above.saturating_sub(*here));
        above = count.as_ref().ok().copied().or(above);
        let drop = Drop { lost, first: drop.is_some_and(|(first, _)| first == step) };
        lines.push(step_line(step.word(), count, &drop, Scale { most, room, columns }, theme));
    }
    let lost = if drop.is_none() { words::bottleneck(funnel) } else { None };
    let mut serving = Line::indented(1).field("serving", 9, false, Role::Dim, theme).put(" ", Role::Text, theme);
    serving = serving.field(&words::count(&funnel.serving, theme), 4, true, words::serving_role(funnel), theme);
    serving = match (&funnel.serving, lost) {
        (Err(why), _) => serving.field(&format!(" {}", why.why()), columns.saturating_sub(16), false, Role::Dim, theme),
        (Ok(_), Some(lost)) => {
            serving.field(&format!(" {} {lost}", theme.points_left()), columns.saturating_sub(16), false, Role::Warn, theme)
        }
        (Ok(_), None) => serving,
    };
    lines.push(serving);
    if let Some(beside) = beside(funnel, columns, theme) {
        lines.push(beside);
    }
    lines
}

/// How many are lost on the way to a step, and whether it is the first loss.
struct Drop {
    lost: u32,
    first: bool,
}

/// The highest count, the columns that its bar takes, and those of the whole line.
#[derive(Clone, Copy)]
struct Scale {
    most: u32,
    room: usize,
    columns: usize,
}

fn step_line(name: &str, count: &Known<u32>, drop: &Drop, scale: Scale, theme: Theme) -> Line {
    let line = Line::indented(1).field(name, 9, false, Role::Dim, theme).put(" ", Role::Text, theme);
    let role = if drop.first { Role::Warn } else { Role::Text };
    let count_role = if count.is_ok() { role } else { Role::Dim };
    let line = line.field(&words::count(count, theme), 4, true, count_role, theme).put(" ", Role::Text, theme);
    match count {
        Err(why) => line.field(why.why(), scale.columns.saturating_sub(17), false, Role::Dim, theme),
        Ok(count) => {
            let full = bar(*count, scale.most, scale.room);
            let gone = bar(count.saturating_add(drop.lost), scale.most, scale.room).saturating_sub(full);
            let (filled, hollow) = theme.bar();
            let line = line.put(&filled.repeat(full), role, theme);
            match drop {
                Drop { lost: 0, .. } => line,
                Drop { lost, first: true } => line.put(&hollow.repeat(gone), Role::Warn, theme).put(
                    &format!(" {} {lost} lost", theme.points_left()),
                    Role::Warn,
                    theme,
                ),
                Drop { lost, first: false } => {
                    line.put(&hollow.repeat(gone), Role::Dim, theme).put(&format!("   {lost} lost"), Role::Dim, theme)
                }
            }
        }
    }
}

/// Pieces of a bar: at least one for what is not zero.
fn bar(count: u32, most: u32, room: usize) -> usize {
    if count == 0 || most == 0 {
        return 0;
    }
    let scaled = u128::from(count) * room as u128 / u128::from(most);
    usize::try_from(scaled).unwrap_or(room).clamp(1, room.max(1))
}

/// Who is counted beside the funnel. Zeros are left out, unknown counts are not.
fn beside(funnel: &Funnel, columns: usize, theme: Theme) -> Option<Line> {
    let counts = [
        ("asleep", &funnel.sleeping),
        ("leaving", &funnel.draining),
        ("no node takes", &funnel.unschedulable),
        ("pulling", &funnel.pulling),
        ("loading", &funnel.loading),
    ];
    let shown: Vec<String> = counts
        .into_iter()
        .filter(|(_, count)| !matches!(count, Ok(0)))
        .map(|(name, count)| format!("{name} {}", words::count(count, theme)))
        .collect();
    let text = format!("beside: {}", shown.join(", "));
    (!shown.is_empty()).then(|| Line::indented(1).field(&text, columns.saturating_sub(2), false, Role::Dim, theme))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(0, 12, 24, 0)]
    #[case(12, 12, 24, 24)]
    #[case(1, 1000, 24, 1)]
    #[case(6, 12, 24, 12)]
    #[case(5, 0, 24, 0)]
    #[case(u32::MAX, u32::MAX, 24, 24)]
    #[case(3, 3, 0, 1)]
    fn bars(#[case] count: u32, #[case] most: u32, #[case] room: usize, #[case] pieces: usize) {
        assert_eq!(bar(count, most, room), pieces);
    }
}
