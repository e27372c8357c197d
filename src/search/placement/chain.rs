//! The placement problem in integers: a chain of layers, members that hold segments of it, links between members.
//!
//! Times are in ticks, memory is in pages; the pricing module fixes both units.

/// Time and memory, in ticks and pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentCost {
    pub ticks: u64,
    pub pages: u64,
}

/// Overflow memory of a member: data that does not fit in device memory is read from it at every step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spill {
    /// Capacity in pages.
    pub pages: u64,
    /// Ticks to read one page.
    pub ticks_per_page: u64,
    /// Ticks to read one page of experts, of which a step reads only some.
    pub ticks_per_expert_page: u64,
}

/// A holder of a segment: a device, or identical devices that shard each layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub layers: Vec<SegmentCost>,
    /// Pages of each layer that are routed experts.
    pub experts: Vec<u64>,
    /// Additional cost of the first segment: the embedding.
    pub first: SegmentCost,
    /// Additional cost of the last segment: the head.
    pub last: SegmentCost,
    /// Additional pages of the head if it is not on the same member as the embedding with tied weights.
    pub copy: u64,
    /// Host ticks to prepare a step.
    pub host: u64,
    /// Pages that any segment takes.
    pub base: u64,
    pub usable: u64,
    pub spill: Option<Spill>,
    /// Overflow of the overflow memory.
    pub disk: Option<Spill>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedHost {
    /// The members, and the number of devices of each; every device takes its own pages.
    pub members: Vec<(usize, u64)>,
    /// Total pages.
    pub pages: u64,
}

/// Whether host overhead counts once per step, or for every segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostOverhead {
    /// The member of the first segment prepares the step for all.
    Once,
    /// Every segment has its own.
    Each,
}

/// Ticks at which times saturate, so that sums do not overflow.
const LONGEST: u128 = 1 << 54;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    pub layers: usize,
    pub members: Vec<Member>,
    /// Ticks from one member to another; `None` where there is no path.
    pub links: Vec<Vec<Option<u64>>>,
    /// Hosts whose memory members share; empty if each member has its own.
    pub hosts: Vec<SharedHost>,
}

/// A segment on its member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stage {
    pub member: usize,
    /// First layer.
    pub from: usize,
    /// First layer of the next stage.
    pub to: usize,
}

/// Consecutive segments: members with numbers of layers; members without layers are dropped.
pub fn consecutive(parts: impl IntoIterator<Item = (usize, usize)>) -> Vec<Stage> {
    let mut from = 0;
    let held = parts.into_iter().filter(|(_, layers)| *layers > 0);
    held.map(|(member, layers)| {
        from += layers;
        Stage { member, from: from - layers, to: from }
    })
    .collect()
}

/// Why a segment, or a placement, does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryShortfall {
    pub member: usize,
    /// Missing pages.
    pub pages: u64,
}

impl Member {
    /// Pages of the segment, `(all, experts)`.
    pub fn pages(&self, layers: usize, from: usize, to: usize) -> (u64, u64) {
        let all: u64 = self.layers[from..to].iter().map(|layer| layer.pages).sum();
        let experts = self.experts[from..to].iter().sum();
        (self.base + all + self.ends(layers, from, to).pages, experts)
    }

    /// Embedding and head, where the segment includes them.
    fn ends(&self, layers: usize, from: usize, to: usize) -> SegmentCost {
        let mut ends = SegmentCost::default();
        if from == 0 {
            ends.ticks += self.first.ticks;
            ends.pages += self.first.pages;
        }
        if to == layers {
            ends.ticks += self.last.ticks;
            ends.pages += self.last.pages + if from == 0 { 0 } else { self.copy };
        }
        ends
    }

    /// Ticks to read the part of `all` pages that does not fit; `None` where it does not fit in overflow memory
    /// either.
    fn spilled(&self, all: u64, experts: u64) -> Option<u64> {
        let over = all.saturating_sub(self.usable);
        if over == 0 {
            return Some(0);
        }
        let pages = |spill: Option<Spill>| spill.map_or(0, |spill| spill.pages);
        if over > pages(self.spill) + pages(self.disk) || over > all - self.base {
            return None;
        }
        // Experts first, and those to disk: a step reads only the selected experts.
        let cheap = over.min(experts);
        let deep = over.saturating_sub(pages(self.spill));
        let deep_cheap = deep.min(cheap);
        let read = |spill: Option<Spill>, cheap: u64, rest: u64| {
            let ticks = |pages: u64, each: u64| u128::from(pages) * u128::from(each);
            let all = spill.map_or(0, |spill| {
                ticks(cheap, spill.ticks_per_expert_page) + ticks(rest, spill.ticks_per_page)
            });
            all.min(LONGEST) as u64
        };
        let (near_cheap, near) = (cheap - deep_cheap, over - deep);
        let host = read(self.spill, near_cheap, near - near_cheap);
        Some(host + read(self.disk, deep_cheap, deep - deep_cheap))
    }

    /// Ticks of the segment without the transfer to the next; `None` where it does not fit.
    pub fn ticks(&self, layers: usize, from: usize, to: usize, hosts: HostOverhead) -> Option<u64> {
        let inner = &self.layers[from..to];
        let held = Sums {
            ticks: inner.iter().map(|layer| layer.ticks).sum(),
            pages: inner.iter().map(|layer| layer.pages).sum(),
            experts: self.experts[from..to].iter().sum(),
        };
        self.timed(layers, (from, to), held, hosts)
    }

    /// The same for a segment with the layer costs `held`.
    fn timed(
        &self,
        layers: usize,
        (from, to): (usize, usize),
        held: Sums,
        hosts: HostOverhead,
    ) -> Option<u64> {
        let ends = self.ends(layers, from, to);
        let streamed = self.spilled(self.base + held.pages + ends.pages, held.experts)?;
        let host = if hosts == HostOverhead::Each || from == 0 { self.host } else { 0 };
        Some(host + held.ticks + ends.ticks + streamed)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    ticks: u64,
    pages: u64,
    experts: u64,
}

/// All segments of a member by prefix sums: the dynamic programs evaluate every one of them.
pub struct Segments<'a> {
    member: &'a Member,
    layers: usize,
    /// Sums over the layers before each layer.
    before: Vec<Sums>,
}

impl<'a> Segments<'a> {
    pub fn new(member: &'a Member, layers: usize) -> Segments<'a> {
        let mut sum = Sums::default();
        let each = member.layers.iter().zip(&member.experts).take(layers).map(|(layer, experts)| {
            sum.ticks += layer.ticks;
            sum.pages += layer.pages;
            sum.experts += experts;
            sum
        });
        let before = std::iter::once(Sums::default()).chain(each).collect();
        Segments { member, layers, before }
    }

    /// As [`Member::ticks`].
    pub fn ticks(&self, from: usize, to: usize, hosts: HostOverhead) -> Option<u64> {
        let (a, b) = (self.before[from], self.before[to]);
        let held =
            Sums { ticks: b.ticks - a.ticks, pages: b.pages - a.pages, experts: b.experts - a.experts };
        self.member.timed(self.layers, (from, to), held, hosts)
    }
}

impl Chain {
    /// Ticks of each stage including the transfer to the next.
    ///
    /// # Errors
    /// The first member that cannot hold its segment; zero missing pages mean that there is no path to the next.
    pub fn stages(&self, stages: &[Stage], hosts: HostOverhead) -> Result<Vec<u64>, MemoryShortfall> {
        let one = |(at, stage): (usize, &Stage)| {
            let member = &self.members[stage.member];
            let ticks = member.ticks(self.layers, stage.from, stage.to, hosts).ok_or_else(|| {
                let (all, _) = member.pages(self.layers, stage.from, stage.to);
                MemoryShortfall { member: stage.member, pages: all.saturating_sub(member.usable) }
            })?;
            let onward = match stages.get(at + 1) {
                Some(next) => self.links[stage.member][next.member]
                    .ok_or(MemoryShortfall { member: stage.member, pages: 0 })?,
                None => 0,
            };
            Ok(ticks + onward)
        };
        for host in &self.hosts {
            let taken = |stage: &Stage| {
                let (member, devices) = host.members.iter().find(|(member, _)| *member == stage.member)?;
                let pages = self.members[*member].spill.map_or(0, |spill| spill.pages);
                Some((devices * self.over(stage).min(pages), *member))
            };
            let each: Vec<(u64, usize)> = stages.iter().filter_map(taken).collect();
            let all: u64 = each.iter().map(|(pages, _)| pages).sum();
            if let Some((_, member)) = each.into_iter().max().filter(|_| all > host.pages) {
                return Err(MemoryShortfall { member, pages: all - host.pages });
            }
        }
        stages.iter().enumerate().map(one).collect()
    }

    /// Pages of a stage beyond the memory of its member.
    pub fn over(&self, stage: &Stage) -> u64 {
        let member = &self.members[stage.member];
        member.pages(self.layers, stage.from, stage.to).0.saturating_sub(member.usable)
    }

    /// The first layer of a stage, counted back from its last, whose experts are moved at least in part out of member
    /// memory so that the rest fits; `None` where everything fits.
    pub fn experts_out(&self, stage: &Stage) -> Option<usize> {
        let (over, experts) = (self.over(stage), &self.members[stage.member].experts);
        let mut out = 0;
        let whole = |layer: &usize| {
            out += experts[*layer];
            out >= over
        };
        let begin = (stage.from..stage.to).rev().find(whole).unwrap_or(stage.from);
        (over > 0 && experts[begin..stage.to].iter().any(|pages| *pages > 0)).then_some(begin)
    }

    /// The same members, each with its own limit on host memory, in pages.
    pub fn with_host_parts(&self, parts: &[u64]) -> Chain {
        let mut separate = Chain { hosts: vec![], ..self.clone() };
        for (member, part) in separate.members.iter_mut().zip(parts) {
            member.spill.iter_mut().for_each(|spill| spill.pages = spill.pages.min(*part));
        }
        separate
    }

    /// Ticks of one token through all stages.
    pub fn sum(&self, stages: &[Stage]) -> Result<u64, MemoryShortfall> {
        Ok(self.stages(stages, HostOverhead::Once)?.iter().sum())
    }

    pub fn slowest(&self, stages: &[Stage]) -> Result<u64, MemoryShortfall> {
        Ok(self.stages(stages, HostOverhead::Each)?.into_iter().max().unwrap_or_default())
    }

    /// Interchangeable members: for each member, the first identical one.
    pub fn kinds(&self) -> Vec<usize> {
        let like = |a: usize, b: usize| {
            self.members[a] == self.members[b]
                && self.links[a][b] == self.links[b][a]
                && (0..self.members.len()).filter(|other| ![a, b].contains(other)).all(|other| {
                    self.links[a][other] == self.links[b][other]
                        && self.links[other][a] == self.links[other][b]
                })
        };
        (0..self.members.len()).map(|a| (0..a).find(|&b| like(a, b)).unwrap_or(a)).collect()
    }
}
