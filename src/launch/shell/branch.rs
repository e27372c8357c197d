//! Which of several branches is read, where the condition between them is not known.

use std::collections::BTreeSet;

use super::run::{Flow, FoundRun, Shell};

/// A branch that perhaps runs, and the state after it.
pub(super) struct BranchCandidate<'a> {
    /// A note for people where it is read.
    pub(super) note: String,
    pub(super) shell: Shell<'a>,
    pub(super) flow: Flow,
}

impl BranchCandidate<'_> {
    fn servers(&self) -> Vec<&[String]> {
        let servers = self.shell.found.iter().filter(|one| one.serves());
        servers.map(|one| one.process.words.as_slice()).collect()
    }
}

impl<'a> Shell<'a> {
    /// Goes on with the first branch that starts a server, else with the one that a shell takes which sets no more than
    /// the script (`usual`), else with none. `complete` says that one of them runs. Servers of the branch, and those
    /// whose words rest on what it sets, have a note.
    pub(super) fn choose(
        &mut self,
        candidates: Vec<BranchCandidate<'a>>,
        usual: Option<usize>,
        complete: bool,
        condition: &str,
    ) -> Flow {
        let serves = candidates.iter().position(|one| !one.servers().is_empty());
        let same = complete && candidates.windows(2).all(|pair| pair[0].servers() == pair[1].servers());
        // A script that ends for want of something does not end here.
        let goes_on = |at: &usize| !matches!(candidates[*at].flow, Flow::Exit | Flow::Return);
        let chosen = serves.or(usual.filter(goes_on));
        let changed = self.changed_by(&candidates);
        let spent: usize = candidates.iter().map(|one| one.shell.steps.saturating_sub(self.steps)).sum();
        let steps = self.steps + spent;
        let note = match chosen {
            Some(at) => candidates[at].note.clone(),
            None => format!("{condition}: nothing that depends on it is read"),
        };
        let mut flow = Flow::Next;
        if let Some(mut one) = chosen.and_then(|at| candidates.into_iter().nth(at)) {
            if !same {
                let own = one.shell.found.iter_mut().filter(|found| found.serves());
                own.for_each(|found| note_once(found, &note));
            }
            flow = one.flow;
            self.adopt(one.shell);
        }
        self.steps = steps;
        for name in changed {
            self.doubts.insert(name, note.clone());
        }
        flow
    }

    /// Variables that have another value after one of the branches.
    fn changed_by(&self, candidates: &[BranchCandidate]) -> BTreeSet<String> {
        let mut changed = BTreeSet::new();
        for one in candidates {
            let after = &one.shell.variables;
            let names = self.variables.keys().chain(after.keys());
            let differs = |name: &&String| {
                self.variables.get(*name).map(|variable| &variable.value)
                    != after.get(*name).map(|variable| &variable.value)
            };
            changed.extend(names.filter(differs).cloned());
        }
        changed
    }
}

fn note_once(found: &mut FoundRun, note: &String) {
    if !found.process.notes.contains(note) {
        found.process.notes.push(note.clone());
    }
}
