//! `mcp`: the Model Context Protocol over standard input and output.

use super::request_limits::LimitArgs;
use super::{CliError, ExitStatus};
use crate::mcp::McpServer;
use crate::spec::error::Error;
use crate::store::catalog::Catalog;

const AFTER: &str = "\
Every request of the command line is a tool, with the same schema and answer; the catalogue, the glossary and \
explanations are resources. An MCP client starts the program itself:

  {\"mcpServers\": {\"mantile\": {\"command\": \"mantile-opt\", \"args\": [\"mcp\"]}}}

Example:
  mantile-opt mcp";

#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct Mcp {
    #[command(flatten)]
    pub limits: LimitArgs,
}

impl Mcp {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let limits = self.limits.limits();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(limits.running + 2)
            .enable_all()
            .build();
        let threads = |fault: std::io::Error| {
            Error::new("mcp", fault.to_string(), "threads of this machine", "close other programs")
        };
        let server = McpServer::new(catalog.clone(), limits).map_err(threads)?;
        let runtime = runtime.map_err(threads)?;
        runtime.block_on(server.serve_over(rmcp::transport::stdio()))?;
        // A read of standard input that nothing ends must not hold the program.
        runtime.shutdown_background();
        Ok(ExitStatus::Success)
    }
}
