//! The commands of the README, run on a node as they stand there.

use std::collections::BTreeSet;
use std::io::Write as _;

use anyhow::{Context as _, Result, ensure};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::Workshop;
use crate::node::Node;
use crate::programs::repository;

/// The section whose commands are run; those before its first title are under its own.
pub(crate) const INSTALL: &str = "Install in ten minutes";

/// Where commands are run, and what they name without a folder lies.
pub(crate) const FOLDER: &str = "/etc/kubernetes";

/// Addresses for documentation: none may be left in a command.
/// Source: <https://www.rfc-editor.org/rfc/rfc5737>
const EXAMPLES: &str = "192.0.2.";

/// The section's commands.
pub(crate) struct Readme {
    recipes: Vec<Recipe>,
    followed: Mutex<BTreeSet<String>>,
}

/// All commands under one title.
struct Recipe {
    title: String,
    commands: String,
}

impl Readme {
    /// Reads the section.
    pub(crate) fn load() -> Result<Self> {
        let text = std::fs::read_to_string(repository().join("README.md")).context("read README.md")?;
        let (_, section) = text.split_once(&format!("\n## {INSTALL}\n")).context("README.md without its section")?;
        let section = section.split("\n## ").next().unwrap_or_default();
        Ok(Self { recipes: recipes(section), followed: Mutex::default() })
    }

    /// Runs the commands under a title. Each change is a text of the README and what stands in for it on this node.
    ///
    /// # Errors
    /// If there is no such title, a text to be changed is not there, or a command fails.
    pub(crate) async fn follow(&self, node: &Node, title: &str, changes: &[(&str, &str)]) -> Result<String> {
        let commands = self.commands(title, changes).with_context(|| format!("README, {title:?}"))?;
        self.followed.lock().await.insert(title.to_owned());
        let started = Instant::now();
        let output = node.shell(&format!("cd {FOLDER}\n{commands}")).await;
        let _ = writeln!(std::io::stderr(), "{}: {title}: {:.1} s", node.name, started.elapsed().as_secs_f32());
        output
    }

    fn commands(&self, title: &str, changes: &[(&str, &str)]) -> Result<String> {
        let recipe = self.recipes.iter().find(|recipe| recipe.title == title).context("no such title")?;
        let mut commands = recipe.commands.clone();
        for (theirs, ours) in changes {
            ensure!(commands.contains(theirs), "{theirs:?} is not in {commands}");
            commands = commands.replace(theirs, ours);
        }
        ensure!(!commands.contains(EXAMPLES), "an address for documentation: {commands}");
        Ok(commands)
    }
}

/// The blocks of shell in a section, each under the last title before it: a heading or words in bold at the start of a
/// line.
fn recipes(section: &str) -> Vec<Recipe> {
    let mut found: Vec<Recipe> = Vec::new();
    let (mut title, mut is_command) = (INSTALL, false);
    for line in section.lines() {
        if line.starts_with("```") {
            is_command = line == "```sh";
        } else if is_command {
            match found.last_mut().filter(|recipe| recipe.title == title) {
                Some(recipe) => recipe.commands += &format!("{line}\n"),
                None => found.push(Recipe { title: title.to_owned(), commands: format!("{line}\n") }),
            }
        } else if let Some(heading) = line.strip_prefix("### ") {
            title = heading;
        } else if let Some((bold, _)) = line.strip_prefix("**").and_then(|rest| rest.split_once("**")) {
            title = bold.trim_end_matches('.');
        }
    }
    found
}

/// Listed last: by then the other tests have run every block.
pub(crate) async fn every_command_was_run(workshop: &Workshop) -> Result<()> {
    let followed = workshop.readme.followed.lock().await.clone();
    let titles: BTreeSet<String> = workshop.readme.recipes.iter().map(|recipe| recipe.title.clone()).collect();
    ensure!(followed == titles, "README.md has {titles:?}, of which {followed:?} were run");
    Ok(())
}
