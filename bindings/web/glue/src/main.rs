//! Writes the JavaScript around the module of `thinair-web`, and the module without what was meant for this program: the library behind
//! `wasm-bindgen`, without the rest of that command. Arguments: the module that the compiler wrote, and a folder.

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(module), Some(folder)) = (arguments.next(), arguments.next()) else {
        anyhow::bail!("give a module and a folder");
    };
    let mut glue = wasm_bindgen_cli_support::Bindgen::new();
    // A script that a page and a worker load in the same way, also from a file.
    glue.input_path(module).no_modules(true)?.typescript(false).generate(folder)
}
