//! Laws of the HTTP server and of the MCP server.

mod connections;
mod sites;
