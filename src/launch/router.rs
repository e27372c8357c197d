//! The router in front of several workers: in a script, in docker compose, in Kubernetes.

use minijinja::{Environment, Value as TemplateValue, context};
use serde::Serialize;

use super::context::{SETTINGS_FOLDER, SlotText, WorkerText};
use super::deployment::{Deployed, WorkerProgram};
use crate::spec::error::Error;
use crate::spec::launch::{Benchmark, Router};

/// A router in its forms.
#[derive(Clone, Debug, Serialize)]
pub struct RouterText {
    /// Its package with version.
    pub package: String,
    /// Its port.
    pub port: u64,
    /// Container image.
    pub image: Option<String>,
    /// In a script.
    pub script: RouterForm,
    /// Among the services of docker compose.
    pub compose: RouterForm,
    /// In front of the services of Kubernetes.
    pub kubernetes: RouterForm,
}

/// A router's command with its files.
#[derive(Clone, Debug, Serialize)]
pub struct RouterForm {
    /// The command.
    pub command: String,
    /// Its files.
    pub files: Vec<RouterFile>,
}

/// A file of a router.
#[derive(Clone, Debug, Serialize)]
pub struct RouterFile {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// A fault of a template that the program or the catalogue brought.
pub fn fault(of: &str, error: &minijinja::Error) -> Error {
    Error::new("launch", format!("the template of {of}: {error:#}"), "a template that renders", "report this")
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
    pub environment: &'a Environment<'a>,
    /// The deployment.
    pub deployed: &'a Deployed<'a>,
    /// Its pools.
    pub workers: &'a [WorkerText],
    /// Name of the model.
    pub model: &'a str,
}

impl Routers<'_> {
    fn render(&self, of: &str, template: &str, context: &TemplateValue) -> Result<String, Error> {
        self.environment.render_str(template, context).map_err(|error| fault(of, &error))
    }

    /// The command of a benchmark.
    ///
    /// # Errors
    /// Its template does not render.
    pub fn command(&self, benchmark: &Benchmark, context: &TemplateValue) -> Result<String, Error> {
        self.render(&benchmark.name, &benchmark.command, context)
    }

    /// The router, where more than one process answers.
    ///
    /// # Errors
    /// A template does not render.
    pub fn text(&self) -> Result<Option<RouterText>, Error> {
        let launch = self.deployed.launch;
        let disaggregated = self.workers.iter().any(|worker| worker.role == "prefill");
        let servers = self.deployed.workers.iter().filter(|worker| worker.program == WorkerProgram::Server);
        let processes: u64 = servers.map(|worker| worker.replicas).sum();
        let router = if disaggregated { &launch.disaggregated_router } else { &launch.router };
        let Some(router) = router.as_ref().filter(|_| processes > 1) else { return Ok(None) };
        let port = u64::from(launch.port);
        let here = |slot: &SlotText| match self.deployed.is_on_one_host() {
            true => format!("127.0.0.1:{}", slot.slot.port),
            false => format!("${{HOST_{}}}:{}", slot.slot.hosts[0], slot.slot.port),
        };
        let service = |slot: &SlotText| format!("{}-{}", slot.slot.worker, slot.slot.replica);
        let composed = |slot: &SlotText| format!("{}:{}", service(slot), launch.port);
        let prefix = resource_name(self.model);
        let clustered = |slot: &SlotText| format!("{prefix}-{}:{}", service(slot), launch.port);
        let host = self.context(("\"$HOST\"", "0.0.0.0"), ("\"$PORT\"", port), &here);
        let inside = |address: &dyn Fn(&SlotText) -> String| {
            self.context(("0.0.0.0", "0.0.0.0"), (&port.to_string(), port), address)
        };
        Ok(Some(RouterText {
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
            Ok(RouterFile { name: name.clone(), text: self.render(name, template, context)? })
        });
        let command = self.render(&router.package, &router.command, context)?;
        Ok(RouterForm { command, files: files.collect::<Result<_, Error>>()? })
    }

    /// The form in a container, which installs the router first, with its files in a folder of their own.
    fn contained(&self, router: &Router, context: &TemplateValue) -> Result<RouterForm, Error> {
        let form = self.form(router, context)?;
        let install = router.install.as_ref().map_or(String::new(), |install| format!("{install} && "));
        let moved = form
            .command
            .replace("\"$PWD/", &format!("\"{SETTINGS_FOLDER}/"))
            .replace("-c disagg", &format!("-c {SETTINGS_FOLDER}/disagg"));
        Ok(RouterForm { command: format!("{install}exec {moved}"), ..form })
    }

    fn context(
        &self,
        (host, host_plain): (&str, &str),
        (port, port_number): (&str, u64),
        address: &dyn Fn(&SlotText) -> String,
    ) -> TemplateValue {
        let addresses = |role: &str| -> Vec<String> {
            let pools = self.workers.iter().filter(|worker| role.is_empty() || worker.role == role);
            pools.flat_map(|worker| &worker.slots).map(address).collect()
        };
        let urls = |role: &str| -> Vec<String> {
            addresses(role).iter().map(|address| format!("\"http://{address}\"")).collect()
        };
        let prefill = self.workers.iter().filter(|worker| worker.role == "prefill");
        let transfer: Vec<u64> =
            prefill.flat_map(|worker| &worker.slots).map(|slot| slot.slot.transfer_port).collect();
        context! {
            host => host, host_plain => host_plain, port => port, port_number => port_number,
            addresses => addresses(""), servers => urls(""),
            prefill => urls("prefill"), decode => urls("decode"),
            prefill_addresses => addresses("prefill"), decode_addresses => addresses("decode"),
            transfer_ports => transfer,
        }
    }
}
