-- Labels a job with the coding agent whose environment it was submitted from: `AdminComment`, which no user can set.
--
-- A library for the site's own job_submit.lua (job_submit_plugins(7)), which calls it like this:
--
--     local loaded, gatehouse = pcall(dofile, "/etc/slurm/gatehouse_label.lua")
--     function slurm_job_submit(job, partitions, uid)
--         if loaded then pcall(gatehouse.label, job) end
--         return slurm.SUCCESS
--     end
--
-- It never refuses, delays or changes a job but for that label; whatever fails in it leaves the job as it was. It reads
-- whether a variable is there, never what it holds. `touch /etc/slurm/gatehouse_label.off` ends it at once.
-- The controller knows the environment of batch jobs alone: jobs of srun(1) and salloc(1) get no label.

local gatehouse = { off_file = "/etc/slurm/gatehouse_label.off" }

-- Variables that harnesses set for what they start, by harness; the first one found answers. In step with
-- principals/engine/harnesses.toml. A site adds its own: table.insert(gatehouse.markers, { "its-slug", { "ITS_NAME" } })
gatehouse.markers = {
    { "claude-code", { "CLAUDECODE", "CLAUDE_CODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID" } },
    { "codex", { "CODEX_THREAD_ID", "CODEX_SANDBOX", "CODEX_CI", "CODEX_SANDBOX_NETWORK_DISABLED" } },
    { "cursor", { "CURSOR_AGENT" } },
    { "copilot", { "COPILOT_CLI", "COPILOT_AGENT", "COPILOT_AGENT_SESSION_ID" } },
    { "gemini-cli", { "GEMINI_CLI" } },
    { "opencode", { "OPENCODE", "OPENCODE_CLIENT", "OPENCODE_SERVER" } },
    { "goose", { "GOOSE_TERMINAL" } },
    { "amp", { "AMP_CURRENT_THREAD_ID" } },
}

local function is_off()
    local file = io.open(gatehouse.off_file)
    if file then
        file:close()
    end
    return file ~= nil
end

-- Return the slug of the harness that an environment is of, and the variable that says so; nil where none does.
function gatehouse.harness_of(environment)
    for _, entry in ipairs(gatehouse.markers) do
        for _, name in ipairs(entry[2]) do
            if environment[name] ~= nil then
                return entry[1], name
            end
        end
    end
    return nil
end

-- Label a job description of slurm_job_submit. What the site itself wrote to the comment is kept in front.
function gatehouse.label(job)
    local environment = job.environment
    if environment == nil or is_off() then
        return
    end
    local harness, marker = gatehouse.harness_of(environment)
    if harness == nil then
        return
    end
    local label = "gatehouse:v1:harness=" .. harness .. ":marker=" .. marker
    local before = job.admin_comment
    job.admin_comment = (before ~= nil and before ~= "") and (before .. " " .. label) or label
end

return gatehouse
