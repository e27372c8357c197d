//! The tools and files that describe a machine, and their outputs as text. Running them is the caller's part.

use std::collections::BTreeMap;
use std::fmt;

use crate::report::machine::MeasuredBandwidth;

/// A tool or file that describes the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MachineTool {
    NvidiaSmi,
    NvidiaTopology,
    AmdSmi,
    RocmSmi,
    SystemProfiler,
    Sysctl,
    CpuInfo,
    MemInfo,
    MemoryLimit,
    AllowedProcessors,
    ProcessorLimit,
    PowerShell,
}

#[derive(Clone, Copy, Debug)]
pub enum ToolWay {
    Run(&'static str, &'static [&'static str]),
    Read(&'static str),
}

/// A tool with the ways to its output, in the order in which they are tried.
#[derive(Debug)]
pub struct ToolEntry {
    pub tool: MachineTool,
    /// Its name for people, and the name of a saved output.
    pub name: &'static str,
    pub finds: &'static str,
    /// Operating systems that have it, as in `std::env::consts::OS`.
    pub systems: &'static [&'static str],
    pub ways: &'static [ToolWay],
}

/// Columns of `nvidia-smi --query-gpu`, <https://docs.nvidia.com/deploy/nvidia-smi/index.html>.
const GPU_COLUMNS: &str = "--query-gpu=name,memory.total,memory.used,pcie.link.gen.max,pcie.link.width.max,power.limit,\
                           mig.mode.current";
/// Columns that drivers without MIG know too.
const FEWER_COLUMNS: &str = "--query-gpu=name,memory.total,memory.used";
const PLAIN_CSV: &str = "--format=csv,noheader,nounits";
/// Where Windows places the tool in its Linux subsystem, which is not always on the search path.
const WSL_SMI: &str = "/usr/lib/wsl/lib/nvidia-smi";
/// Prints the processors and the memory as one JSON object.
const WINDOWS_QUERY: &str = "@{processors=@(Get-CimInstance Win32_Processor | Select-Object Name,NumberOfCores,\
                             NumberOfLogicalProcessors);memory=(Get-CimInstance Win32_OperatingSystem | Select-Object \
                             TotalVisibleMemorySize,FreePhysicalMemory)} | ConvertTo-Json -Depth 3 -Compress";

use MachineTool as T;
use ToolWay::{Read, Run};

/// Arguments of `amd-smi` and of `rocm-smi`.
const AMD: &[&str] = &["static", "--asic", "--vram", "--bus", "--limit", "--json"];
const ROCM: &[&str] = &["--showproductname", "--showmeminfo", "vram", "--showmaxpower", "--json"];
const SYSCTL: &[&str] = &["machdep.cpu.brand_string", "hw.memsize", "hw.physicalcpu", "hw.logicalcpu"];

const fn entry(
    (tool, name): (MachineTool, &'static str),
    finds: &'static str,
    systems: &'static [&'static str],
    ways: &'static [ToolWay],
) -> ToolEntry {
    ToolEntry { tool, name, finds, systems, ways }
}

pub static TOOLS: &[ToolEntry] = &[
    entry(
        (T::NvidiaSmi, "nvidia-smi"),
        "GPUs of NVIDIA",
        &["linux", "windows"],
        &[
            Run("nvidia-smi", &[GPU_COLUMNS, PLAIN_CSV]),
            Run("nvidia-smi", &[FEWER_COLUMNS, PLAIN_CSV]),
            Run(WSL_SMI, &[GPU_COLUMNS, PLAIN_CSV]),
        ],
    ),
    entry(
        (T::NvidiaTopology, "nvidia-smi topo"),
        "NVLink between GPUs of NVIDIA",
        &["linux"],
        &[Run("nvidia-smi", &["topo", "-m"])],
    ),
    entry(
        (T::AmdSmi, "amd-smi"),
        "GPUs of AMD",
        &["linux"],
        &[Run("amd-smi", AMD), Run("/opt/rocm/bin/amd-smi", AMD)],
    ),
    entry(
        (T::RocmSmi, "rocm-smi"),
        "GPUs of AMD",
        &["linux"],
        &[Run("rocm-smi", ROCM), Run("/opt/rocm/bin/rocm-smi", ROCM)],
    ),
    entry(
        (T::SystemProfiler, "system_profiler"),
        "chips of Apple",
        &["macos"],
        &[Run("system_profiler", &["-json", "SPHardwareDataType", "SPDisplaysDataType"])],
    ),
    entry((T::Sysctl, "sysctl"), "processor and memory", &["macos"], &[Run("sysctl", SYSCTL)]),
    entry((T::CpuInfo, "cpuinfo"), "processor", &["linux"], &[Read("/proc/cpuinfo")]),
    entry((T::MemInfo, "meminfo"), "memory", &["linux"], &[Read("/proc/meminfo")]),
    entry(
        (T::MemoryLimit, "memory.max"),
        "memory limit of a container",
        &["linux"],
        &[Read("/sys/fs/cgroup/memory.max"), Read("/sys/fs/cgroup/memory/memory.limit_in_bytes")],
    ),
    entry(
        (T::AllowedProcessors, "status"),
        "processors that may be used",
        &["linux"],
        &[Read("/proc/self/status")],
    ),
    entry(
        (T::ProcessorLimit, "cpu.max"),
        "processor limit of a container",
        &["linux"],
        &[Read("/sys/fs/cgroup/cpu.max")],
    ),
    entry(
        (T::PowerShell, "powershell"),
        "processor and memory",
        &["windows"],
        &[Run("powershell", &["-NoProfile", "-NonInteractive", "-Command", WINDOWS_QUERY])],
    ),
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolOutput {
    Text(String),
    /// The program or file does not exist.
    Missing,
    Failed(String),
}

/// The outcome of every tool that was tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineOutputs(pub BTreeMap<MachineTool, ToolOutput>);

impl MachineOutputs {
    /// The output of a tool, where it has one.
    pub fn text(&self, tool: MachineTool) -> Option<&str> {
        match self.0.get(&tool)? {
            ToolOutput::Text(text) => Some(text),
            ToolOutput::Missing | ToolOutput::Failed(_) => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamTest {
    None,
    /// Once for a machine: a kept measurement serves.
    Once,
    /// Now, whatever was measured before.
    Now,
}

/// Access to a machine: the outputs of its tools, and a test of its memory.
pub trait MachineProbe: fmt::Debug + Send + Sync {
    /// The outputs; the same at every call.
    fn outputs(&self) -> MachineOutputs;

    /// The memory bandwidth of all cores of `machine`, over at most `most` bytes; `None` where it cannot be measured.
    fn bandwidth(&self, machine: &str, most: f64, wanted: StreamTest) -> Option<MeasuredBandwidth>;
}
