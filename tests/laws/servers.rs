//! Laws of the HTTP server and of the MCP server.

mod assistants;
mod connections;
mod flights;
mod sites;
