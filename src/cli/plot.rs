//! `--plot`: pictures of results.

use std::path::{Path, PathBuf};

use crate::report::svg::SvgPicture;
use crate::report::svg::palette::SvgTheme;
use crate::spec::error::Error;
use crate::store::file;
#[cfg(feature = "png")]
use crate::store::png::png;

/// Where a picture is written.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PlotArgs {
    /// Draw the result to a file; the ending selects SVG, PNG or a page in HTML
    #[arg(long, value_name = "FILE.svg|.png|.html", help_heading = "Output")]
    pub plot: Option<PathBuf>,
}

#[derive(Clone, Copy)]
enum PictureFormat {
    Svg,
    #[cfg(feature = "png")]
    Png,
    Html,
}

impl PictureFormat {
    /// By the ending of the file; standard output is SVG.
    fn of(path: &Path) -> Result<PictureFormat, Error> {
        if path.as_os_str() == "-" {
            return Ok(PictureFormat::Svg);
        }
        let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_lowercase);
        let fix = match ending.as_deref() {
            Some("svg") => return Ok(PictureFormat::Svg),
            Some("html" | "htm") => return Ok(PictureFormat::Html),
            #[cfg(feature = "png")]
            Some("png") => return Ok(PictureFormat::Png),
            #[cfg(not(feature = "png"))]
            Some("png") => "write an .svg file, or build the program with the feature `png`",
            _ => "write e.g. --plot picture.svg",
        };
        let found = format!("`{}`", file::shown(path));
        Err(Error::new("plot", found, "a file that ends in .svg, .png or .html", fix))
    }
}

impl PlotArgs {
    /// Checks the ending of the file, before anything is computed.
    pub fn check(&self) -> Result<(), Error> {
        self.plot.as_deref().map_or(Ok(()), |path| PictureFormat::of(path).map(|_| ()))
    }

    /// Writes the picture.
    ///
    /// # Errors
    /// There is nothing to draw, or the file cannot be written.
    pub fn write(&self, picture: impl FnOnce() -> SvgPicture) -> Result<(), Error> {
        let Some(path) = &self.plot else { return Ok(()) };
        let format = PictureFormat::of(path)?;
        let picture = picture();
        if picture.is_empty() {
            let fix = "omit --plot, or relax the limits until something runs";
            return Err(Error::new("plot", "nothing that runs", "a result with metrics", fix));
        }
        match format {
            PictureFormat::Svg => file::write(path, &picture.svg(SvgTheme::Adaptive)),
            #[cfg(feature = "png")]
            PictureFormat::Png => file::write_bytes(path, &png(&picture.svg(SvgTheme::Light))?),
            PictureFormat::Html => file::write(path, &picture.html()),
        }
    }
}
