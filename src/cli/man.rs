//! `man`: the manual page, every command in one.

use clap_mangen::Man;

use super::error::CliError;
use super::exit::Exit;
use super::out::Out;

/// Print the manual page, as roff.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// Prints the page.
pub(super) fn run(_: &Args, out: &mut Out) -> Result<Exit, CliError> {
    let mut command = super::command().after_help("");
    command.build();
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    page.extend_from_slice(b".SH COMMANDS\n");
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        let man = Man::new(sub.clone());
        let mut part = Vec::new();
        man.render_synopsis_section(&mut part)?;
        man.render_description_section(&mut part)?;
        man.render_options_section(&mut part)?;
        page.extend_from_slice(format!(".SS \"modeldeck {}\"\n", sub.get_name()).as_bytes());
        page.extend_from_slice(&inner(&String::from_utf8_lossy(&part)));
    }
    page.extend_from_slice(b".SH \"EXIT STATUS\"\n.nf\n");
    for line in super::exit::TABLE.lines().skip(1) {
        page.extend_from_slice(line.trim_start().replace("--", "\\-\\-").as_bytes());
        page.push(b'\n');
    }
    page.extend_from_slice(b".fi\n");
    out.bytes(&page)?;
    Ok(Exit::Done)
}

/// Sections of a command's own page as paragraphs with a bold head; the description needs none.
fn inner(part: &str) -> Vec<u8> {
    let mut text = String::new();
    for line in part.lines() {
        match line.strip_prefix(".SH ") {
            Some("DESCRIPTION" | "SYNOPSIS") => text.push_str(".PP"),
            Some(head) => text.push_str(&format!(".PP\n.B {head}")),
            None => text.push_str(line),
        }
        text.push('\n');
    }
    text.into_bytes()
}
