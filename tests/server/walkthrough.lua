-- A user of Neovim: opens a manifest, types a fault, sees it, applies the fix, sees it gone. Prints one line of JSON for each step.
local python, path = vim.env.WALK_PYTHON, vim.env.WALK_FILE
vim.cmd("edit " .. vim.fn.fnameescape(path))
local buffer = vim.api.nvim_get_current_buf()
local client = vim.lsp.start_client({
  name = "opschema",
  cmd = { python, "-m", "opschema_cli", "server" },
  root_dir = vim.env.WALK_ROOT,
  workspace_folders = { { uri = vim.uri_from_fname(vim.env.WALK_ROOT), name = "tree" } },
})
vim.lsp.buf_attach_client(buffer, client)

local function codes()
  return vim.tbl_map(function(item) return item.code end, vim.diagnostic.get(buffer))
end

local function step(name, condition)
  local started = vim.loop.hrtime()
  local done = vim.wait(20000, condition, 2)
  local found = { step = name, done = done, ms = math.floor((vim.loop.hrtime() - started) / 1e6), codes = codes() }
  io.stdout:write(vim.fn.json_encode(found) .. "\n")
end

-- The first publication of an open text comes with its findings; this one has none.
local answered = false
local publish = vim.lsp.handlers["textDocument/publishDiagnostics"]
vim.lsp.handlers["textDocument/publishDiagnostics"] = function(error, result, ...)
  answered = answered or (result and result.uri == vim.uri_from_bufnr(buffer))
  return publish(error, result, ...)
end
step("open", function() return answered and #codes() == 0 end)

vim.fn.search("float16 | bfloat16")
vim.cmd("normal! cwfp16")
step("type", function() return vim.tbl_contains(codes(), "DTY101") end)

local range = vim.lsp.util.make_range_params(0)
range.context = { diagnostics = {} }
local answers = vim.lsp.buf_request_sync(buffer, "textDocument/codeAction", range, 20000)
local action = vim.tbl_filter(function(item) return item.isPreferred end, answers[client].result)[1]
vim.lsp.util.apply_workspace_edit(action.edit, vim.lsp.get_client_by_id(client).offset_encoding)
step(action.title, function() return #codes() == 0 end)

io.stdout:write(vim.fn.json_encode({ line = vim.api.nvim_get_current_line(), modified = vim.bo.modified }) .. "\n")
vim.lsp.stop_client(client)
vim.cmd("qall!")
