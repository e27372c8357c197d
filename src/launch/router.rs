//! The router in front of several workers: in a script, in docker compose, in Kubernetes.

use minijinja::value::Serde;
use minijinja::{Value as TemplateValue, context};
use serde::Serialize;

use super::context::{SETTINGS_FOLDER, SlotText, WorkerText};
use super::deployment::{Deployed, WorkerProgram};
use super::engine::{Engine, RenderedText};
use super::program_check::ProgramCheck;
use crate::spec::error::Error;
use crate::spec::launch::{Benchmark, Router};
use crate::spec::writer::{Language, Writer, WrittenText};

/// A router in its forms.
#[derive(Clone, Debug, Serialize)]
pub struct RouterText {
    /// Its package with version.
    pub package: String,
    pub port: u64,
    pub image: Option<String>,
    /// The check of its program.
    pub needs: Option<ProgramCheck>,
    pub script: RouterForm,
    /// Among the services of docker compose.
    pub compose: RouterForm,
    /// In front of the services of Kubernetes.
    pub kubernetes: RouterForm,
}

/// A router's command with its files.
#[derive(Clone, Debug, Serialize)]
pub struct RouterForm {
    pub command: RenderedText,
    pub files: Vec<RouterFile>,
}

#[derive(Clone, Debug, Serialize)]
pub struct RouterFile {
    pub name: String,
    pub text: String,
}

/// A name for resources: small letters, digits and dashes.
pub fn resource_name(model: &str) -> String {
    let short = model.rsplit('/').next().unwrap_or(model).to_lowercase();
    let plain = short.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    let name: String = plain.take(40).collect();
    let name = name.trim_matches('-').to_owned();
    if name.starts_with(|c: char| c.is_ascii_lowercase()) { name } else { format!("m-{name}") }
}

/// Renders the templates of the catalogue.
pub struct Routers<'a> {
    /// The engine of the templates.
    pub engine: &'a Engine,
    pub deployed: &'a Deployed<'a>,
    /// Its pools.
    pub workers: &'a [WorkerText],
    pub model: &'a str,
}

impl Routers<'_> {
    pub fn command(&self, benchmark: &Benchmark, context: &TemplateValue) -> Result<RenderedText, Error> {
        self.engine.text(&benchmark.name, Language::Shell, &benchmark.command, context)
    }

    /// The router, where more than one process answers.
    pub fn text(&self) -> Result<Option<RouterText>, Error> {
        let launch = self.deployed.launch;
        let disaggregated = self.workers.iter().any(|worker| worker.role == "prefill");
        let servers = self.deployed.workers.iter().filter(|worker| worker.program == WorkerProgram::Server);
        let processes: u64 = servers.map(|worker| worker.replicas).sum();
        let router = if disaggregated { &launch.disaggregated_router } else { &launch.router };
        let Some(router) = router.as_ref().filter(|_| processes > 1) else { return Ok(None) };
        let port = u64::from(launch.port);
        let here = |slot: &SlotText| match self.deployed.is_on_one_host() {
            true => address("127.0.0.1", slot.slot.port),
            false => Some(WrittenText::address_on(slot.slot.hosts[0], slot.slot.port)),
        };
        let service = |slot: &SlotText| format!("{}-{}", slot.slot.worker, slot.slot.replica);
        let composed = |slot: &SlotText| address(&service(slot), port);
        let prefix = resource_name(self.model);
        let clustered = |slot: &SlotText| address(&format!("{prefix}-{}", service(slot)), port);
        let variables = ["HOST", "PORT"].map(WrittenText::shell_variable);
        let host = self.context(
            context! { host => Serde(&variables[0]), port => Serde(&variables[1]) },
            port,
            &here,
        );
        let inside = |address: Address| {
            let any = Writer::ShellWord.write("0.0.0.0");
            self.context(context! { host => any.map(Serde), port => port }, port, address)
        };
        let install = router
            .install
            .clone()
            .unwrap_or_else(|| format!("install {}, see {}", router.package, router.source));
        Ok(Some(RouterText {
            needs: ProgramCheck::of(router.command.split_whitespace(), &install),
            package: router.package.clone(),
            port,
            image: router.image.clone().or_else(|| self.deployed.image.map(|image| image.image.clone())),
            script: self.form(router, &host)?,
            compose: self.contained(router, &inside(&composed))?,
            kubernetes: self.contained(router, &inside(&clustered))?,
        }))
    }

    fn form(&self, router: &Router, context: &TemplateValue) -> Result<RouterForm, Error> {
        let files = router.files.iter().map(|(name, template)| {
            let language = if name.ends_with(".conf") { Language::Nginx } else { Language::Yaml };
            let text = self.engine.text(name, language, template, context)?.text;
            Ok(RouterFile { name: name.clone(), text })
        });
        let command = self.engine.text(&router.package, Language::Shell, &router.command, context)?;
        Ok(RouterForm { command, files: files.collect::<Result<_, Error>>()? })
    }

    /// The form in a container, which installs the router first, with its files in a folder of their own.
    fn contained(&self, router: &Router, context: &TemplateValue) -> Result<RouterForm, Error> {
        let form = self.form(router, context)?;
        let install = router.install.as_ref().map_or(String::new(), |install| format!("{install} && "));
        let moved = form
            .command
            .text
            .replace("\"$PWD/", &format!("\"{SETTINGS_FOLDER}/"))
            .replace("-c disagg", &format!("-c {SETTINGS_FOLDER}/disagg"));
        let command = RenderedText { text: format!("{install}exec {moved}"), ..form.command };
        Ok(RouterForm { command, ..form })
    }

    /// The values that the template of a router sees: `own` is the address that it listens on.
    fn context(&self, own: TemplateValue, port: u64, address: Address) -> TemplateValue {
        let addresses = |role: &str| -> Vec<WrittenText> {
            let pools = self.workers.iter().filter(|worker| role.is_empty() || worker.role == role);
            pools.flat_map(|worker| &worker.slots).filter_map(address).collect()
        };
        let urls = |role: &str| addresses(role).iter().map(WrittenText::url).collect::<Vec<_>>();
        let prefill = self.workers.iter().filter(|worker| worker.role == "prefill");
        let transfer: Vec<u64> =
            prefill.flat_map(|worker| &worker.slots).map(|slot| slot.slot.transfer_port).collect();
        context! {
            host_plain => Writer::Plain.write("0.0.0.0").map(Serde), port_number => port,
            addresses => Serde(addresses("")), servers => Serde(urls("")),
            prefill => Serde(urls("prefill")), decode => Serde(urls("decode")),
            prefill_addresses => Serde(addresses("prefill")), decode_addresses => Serde(addresses("decode")),
            transfer_ports => transfer,
            ..own
        }
    }
}

/// The address of a replica.
type Address<'a> = &'a dyn Fn(&SlotText) -> Option<WrittenText>;

/// The address of a process under a name of ours.
fn address(name: &str, port: u64) -> Option<WrittenText> {
    Writer::Plain.write(&format!("{name}:{port}"))
}
