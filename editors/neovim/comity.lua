-- comity in Neovim 0.7 or later: put this file into ~/.config/nvim/plugin/, or `require` it from init.lua.
-- Needed: pip install "comity[languageserver]". Another command: vim.g.comity_command = { "/path/to/comity", "languageserver" }

local FILES = { "robots.txt", "ai.txt", "ai.xml", "automation-preferences.txt", "tdmrep.json", "trust.txt", "*.rsl.xml", "license.xml", "*.html", "*.htm" }

local function start(event)
  local path = vim.api.nvim_buf_get_name(event.buf)
  local folder = vim.fn.fnamemodify(path, ":p:h")
  local config = {
    name = "comity",
    cmd = vim.g.comity_command or { "comity", "languageserver" },
    root_dir = folder,
    workspace_folders = { { uri = vim.uri_from_fname(folder), name = folder } },
  }
  if vim.lsp.start then -- 0.8 and later
    return vim.lsp.start(config, { bufnr = event.buf })
  end
  for _, client in ipairs(vim.lsp.get_active_clients()) do
    if client.name == "comity" and client.config.root_dir == folder then
      return vim.lsp.buf_attach_client(event.buf, client.id)
    end
  end
  vim.lsp.buf_attach_client(event.buf, vim.lsp.start_client(config))
end

local group = vim.api.nvim_create_augroup("comity", {})
vim.api.nvim_create_autocmd({ "BufReadPost", "BufNewFile" }, { group = group, pattern = FILES, callback = start })
vim.api.nvim_create_autocmd({ "BufReadPost", "BufNewFile" }, {
  group = group,
  pattern = { "robots.txt", "ai.txt", "automation-preferences.txt" },
  callback = function(event)
    vim.bo[event.buf].commentstring = "# %s"
    vim.bo[event.buf].omnifunc = "v:lua.vim.lsp.omnifunc"
  end,
})
