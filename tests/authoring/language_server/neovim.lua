-- What a user does: opens a robots.txt, sees what is wrong, completes a line, mends it, and saves.
local function wait(what, done)
  if not vim.wait(60000, done, 50) then
    io.stderr:write("there is no " .. what .. "\n")
    vim.cmd("cquit 3")
  end
end

local function main()
  vim.cmd("edit robots.txt")
  wait("problem", function() return #vim.diagnostic.get(0) > 0 end)
  for _, found in ipairs(vim.diagnostic.get(0)) do
    print("problem", found.lnum, found.col, found.code)
  end
  -- a line is typed, and completed
  vim.api.nvim_buf_set_lines(0, -1, -1, false, { "Disallow: /a", "Cra" })
  local line = vim.api.nvim_buf_line_count(0)
  vim.api.nvim_win_set_cursor(0, { line, 3 })
  local params = vim.lsp.util.make_position_params()
  params.position.character = 3
  local item
  wait("completion", function()
    local answers = vim.lsp.buf_request_sync(0, "textDocument/completion", params, 10000) or {}
    for _, answer in pairs(answers) do
      for _, each in ipairs((answer.result or {}).items or {}) do
        if each.label == "Crawl-delay" then item = each end
      end
    end
    return item ~= nil
  end)
  local client = vim.lsp.get_active_clients()[1]
  vim.lsp.util.apply_text_edits({ item.textEdit }, 0, client.offset_encoding)
  vim.api.nvim_buf_set_lines(0, line - 1, line, false, { vim.api.nvim_buf_get_lines(0, line - 1, line, false)[1] .. "10" })
  -- what can be mended is
  local function fixes()
    local asked = vim.lsp.util.make_range_params()
    asked.range = { start = { line = 0, character = 0 }, ["end"] = { line = line, character = 0 } }
    asked.context = { diagnostics = {}, only = { "source.fixAll" } }
    for _, answer in pairs(vim.lsp.buf_request_sync(0, "textDocument/codeAction", asked, 10000) or {}) do
      for _, action in ipairs(answer.result or {}) do
        return action
      end
    end
  end
  local action = fixes()
  if action then
    print("fix", action.title)
    vim.lsp.util.apply_workspace_edit(action.edit, client.offset_encoding)
  end
  vim.cmd("write")
  wait("end of the problem", function()
    for _, found in ipairs(vim.diagnostic.get(0)) do
      if found.code == "robots.misspelled" then return not action end
    end
    return true
  end)
  vim.cmd("qall!")
end

local ok, problem = pcall(main)
if not ok then
  io.stderr:write(tostring(problem) .. "\n")
  vim.cmd("cquit 4")
end
