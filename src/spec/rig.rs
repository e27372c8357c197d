//! Rigs as in their files: heterogeneous devices, and the links between them.
//!
//! Independent of models; devices and links are named here and resolved elsewhere.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cluster::Host;
use super::error::Error;
use super::figure::{ByteRate, Figure, Seconds};
use super::limits::{HOSTS, LINKS, MEMBERS};
use super::ranges;

/// Topology of a list of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum RigTopology {
    /// Mesh: every two directly, or through one ideal switch; one kind of link.
    Mesh,
    /// Ring: each to the next, the last to the first; one link, or one per member.
    Ring,
    /// Star: each to a hub without compute (a host, a switch); one link, or one per member; a path takes two links.
    Star,
    /// Chain: each to the next; one link, or one per pair of neighbours.
    Chain,
}

/// A link between two members, both directions.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RigLink {
    /// Id of the link.
    pub link: String,
    /// The two members that it joins, where there is no topology.
    pub between: Option<[String; 2]>,
    /// Bandwidth per direction; the link's own if absent.
    pub bandwidth: Option<Figure<ByteRate>>,
    /// Latency of a small message; the link's own if absent.
    pub latency: Option<Figure<Seconds>>,
}

/// Equal devices of a rig.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RigMember {
    /// Their name in the rig; the device's name if absent.
    pub name: Option<String>,
    /// Id of the device.
    pub device: String,
    /// Their number: members of their own, or with `joined` one group that may share layers.
    #[serde(default = "one")]
    pub count: u64,
    /// The link between every two devices of the group: its layers may be shared (tensor parallel) or divided.
    pub joined: Option<RigLink>,
    /// Id of their runtime, where it differs from the common one.
    pub runtime: Option<String>,
    /// Their host, one of `hosts`; devices of one host share its memory.
    pub host: Option<String>,
}

fn one() -> u64 {
    1
}

/// A rig as in its file.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rig {
    /// File name without `.json`.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Other names.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// The devices.
    pub members: Vec<RigMember>,
    /// Topology; absent where each of `links` has its own `between`.
    pub topology: Option<RigTopology>,
    /// The links.
    #[serde(default)]
    pub links: Vec<RigLink>,
    /// The hosts of the devices, where their memory is known.
    #[serde(default)]
    pub hosts: BTreeMap<String, Host>,
    /// Remarks.
    pub notes: Option<String>,
}

pub type RigNode = usize;

impl Rig {
    /// Checks the constraints that the types do not express.
    pub fn check(&self) -> Result<(), Error> {
        let count = self.members.iter().fold(0, |all: u64, post| all.saturating_add(post.count.max(1)));
        MEMBERS.check_whole("members", count)?;
        LINKS.check_whole("links", self.links.len() as u64)?;
        HOSTS.check_whole("hosts", self.hosts.len() as u64)?;
        for (at, post) in self.members.iter().enumerate() {
            let key = format!("members[{at}]");
            if post.count == 0 {
                let fix = "set a number, or remove the member";
                return Err(Error::new(format!("{key}.count"), "0", "1 or more", fix));
            }
            if let Some(host) = post.host.as_ref().filter(|host| !self.hosts.contains_key(*host)) {
                let known: Vec<&str> = self.hosts.keys().map(String::as_str).collect();
                let found = format!("`{host}`, which is not in `hosts`");
                let fix = format!("add it to `hosts`, which has {}", known.join(", "));
                return Err(Error::new(format!("{key}.host"), found, "one of `hosts`", fix));
            }
        }
        self.hosts.iter().try_for_each(|(name, host)| ranges::host(&format!("hosts.{name}"), host))
    }

    /// The name of each member; those of a count get a number.
    pub fn names(&self, device: impl Fn(&RigMember) -> String) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for post in &self.members {
            let name = post.name.clone().unwrap_or_else(|| device(post));
            let members = if post.joined.is_some() { 1 } else { post.count };
            names.extend((0..members).map(|_| name.clone()));
        }
        let many = names.clone();
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for name in names.iter_mut().filter(|name| many.iter().filter(|other| other == name).count() > 1) {
            let number = seen.entry(name.clone()).or_insert(0);
            *number += 1;
            *name = format!("{name} {number}");
        }
        names
    }

    /// The members that each link joins; a hub comes after the last of `names`.
    ///
    /// # Errors
    /// The topology needs another number of links, or a link names an unknown member.
    pub fn edges(&self, names: &[String]) -> Result<Vec<(RigNode, RigNode, &RigLink)>, Error> {
        let count = names.len();
        let pairs: Vec<(RigNode, RigNode)> = match self.topology {
            None => return self.named(names),
            Some(_) if count < 2 => return Ok(vec![]),
            Some(RigTopology::Mesh) => (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))).collect(),
            Some(RigTopology::Chain) => (1..count).map(|b| (b - 1, b)).collect(),
            Some(RigTopology::Ring) if count == 2 => vec![(0, 1)],
            Some(RigTopology::Ring) => (0..count).map(|a| (a, (a + 1) % count)).collect(),
            Some(RigTopology::Star) => (0..count).map(|a| (a, count)).collect(),
        };
        let stated = self.links.len();
        if stated != 1 && stated != pairs.len() {
            let fix = "give one link for all, or one for each in the order of `members`";
            let expected = format!("1 or {} links", pairs.len());
            return Err(Error::new("links", format!("{stated}"), expected, fix));
        }
        let wires = self.links.iter().cycle();
        Ok(pairs.into_iter().zip(wires).map(|((a, b), wire)| (a, b, wire)).collect())
    }

    fn named(&self, names: &[String]) -> Result<Vec<(RigNode, RigNode, &RigLink)>, Error> {
        let edge = |at: usize, wire: &RigLink| -> Result<(RigNode, RigNode), Error> {
            let between = wire.between.as_ref().ok_or_else(|| {
                let fix = "add `topology`, or the two members of each link as `between`";
                Error::new(format!("links[{at}].between"), "nothing", "two members", fix)
            })?;
            let node = |name: &String| {
                names.iter().position(|known| known.eq_ignore_ascii_case(name)).ok_or_else(|| {
                    let fix = super::near::suggest(
                        name,
                        names.iter().map(String::as_str),
                        "mantile-opt schema rig",
                    );
                    let found = format!("`{name}`, which is not a member");
                    Error::new(format!("links[{at}].between"), found, "a member's name", fix)
                })
            };
            Ok((node(&between[0])?, node(&between[1])?))
        };
        let each = self.links.iter().enumerate();
        each.map(|(at, wire)| edge(at, wire).map(|(a, b)| (a, b, wire))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::text::from_json;

    fn rig(topology: &str, members: usize, links: usize) -> Rig {
        let posts: Vec<String> = (0..members).map(|at| format!("{{\"device\": \"d{at}\"}}")).collect();
        let wires = vec!["{\"link\": \"l\"}"; links];
        let text = format!(
            "{{\"id\": \"r\", \"name\": \"r\", \"topology\": \"{topology}\", \"members\": [{}], \"links\": [{}]}}",
            posts.join(","),
            wires.join(",")
        );
        from_json(&text, "a rig").unwrap_or_else(|fault| panic!("{fault}"))
    }

    fn pairs(topology: &str, members: usize, links: usize) -> Result<Vec<(RigNode, RigNode)>, Error> {
        let rig = rig(topology, members, links);
        let names = rig.names(|post| post.device.clone());
        rig.edges(&names).map(|edges| edges.into_iter().map(|(a, b, _)| (a, b)).collect())
    }

    #[test]
    fn topologies_are_lists_of_links() {
        assert_eq!(pairs("chain", 3, 2).unwrap(), [(0, 1), (1, 2)]);
        assert_eq!(pairs("ring", 3, 1).unwrap(), [(0, 1), (1, 2), (2, 0)]);
        assert_eq!(pairs("ring", 2, 1).unwrap(), [(0, 1)]);
        assert_eq!(pairs("mesh", 3, 1).unwrap(), [(0, 1), (0, 2), (1, 2)]);
        assert_eq!(pairs("star", 2, 2).unwrap(), [(0, 2), (1, 2)], "the hub is beyond the members");
        assert_eq!(pairs("chain", 1, 0).unwrap(), []);
        assert_eq!(pairs("chain", 4, 2).unwrap_err().key, "links");
    }

    #[test]
    fn members_of_one_name_are_numbered() {
        let text = r#"{"id": "r", "name": "r", "members": [{"device": "mac", "count": 2}, {"device": "spark"}],
            "links": [{"link": "l", "between": ["mac 1", "Spark"]}, {"link": "l", "between": ["mac 2", "x"]}]}"#;
        let rig: Rig = from_json(text, "a rig").unwrap_or_else(|fault| panic!("{fault}"));
        let names = rig.names(|post| post.device.clone());
        assert_eq!(names, ["mac 1", "mac 2", "spark"]);
        assert_eq!(rig.edges(&names).unwrap_err().key, "links[1].between");
    }

    #[test]
    fn a_link_that_carries_nothing_and_a_host_that_is_not_there_are_refused() {
        let of = |members: &str, links: &str| {
            let text = format!(
                r#"{{"id": "r", "name": "r", "topology": "mesh", "members": [{members}], "links": [{links}]}}"#
            );
            from_json::<Rig>(&text, "a rig").and_then(|rig| rig.check())
        };
        let zero = r#"{"link": "l", "bandwidth": {"value": "0 GB/s", "source": "cut"}}"#;
        assert_eq!(of(r#"{"device": "d"}"#, zero).unwrap_err().key, "links[0].bandwidth");
        assert_eq!(of(r#"{"device": "d", "host": "pc"}"#, "").unwrap_err().key, "members[0].host");
        assert_eq!(of(r#"{"device": "d", "count": 0}"#, "").unwrap_err().key, "members[0].count");
        assert_eq!(of("", "").unwrap_err().key, "members");
    }
}
