"""Labelled lines for the secret detector, as data.

Values are made at run time from a seed, so that no file of the project holds anything shaped like a token.
"""

import base64
import json
import random
import string

LETTERS = string.ascii_letters
ALNUM = string.ascii_letters + string.digits


def _b64(document: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).decode().rstrip("=")


def make_values(seed: int = 7) -> dict[str, str]:
    """Make one value of every shape."""
    rng = random.Random(seed)

    def text(length: int, alphabet: str = ALNUM) -> str:
        return "".join(rng.choice(alphabet) for _ in range(length))

    return {
        "ghp": "ghp_" + text(36),
        "gho": "gho_" + text(36),
        "pat": "github_pat_" + text(22) + "_" + text(59),
        "glpat": "glpat-" + text(20),
        "akia": "AKIA" + text(16, string.ascii_uppercase + string.digits),
        "asia": "ASIA" + text(16, string.ascii_uppercase + string.digits),
        "awssecret": "q" + text(18) + "/" + text(19) + "7",
        "openai": "sk-proj-" + text(60) + "3" + text(20),
        "openai_old": "sk-" + text(47) + "5",
        "anthropic": "sk-ant-" + "api03-" + text(93) + "AA",
        "aiza": "AIza" + text(35),
        "hf": "hf_" + text(34, LETTERS),
        "hf_mixed": "hf_" + text(34),
        "xoxb": "xoxb-" + text(12, string.digits) + "-" + text(24),
        "wandb": text(40, "0123456789abcdef"),
        "nvapi": "nvapi-" + text(64),
        "npm": "npm_" + text(36),
        "pypi": "pypi-" + "AgEIcHlwaS5vcmc" + text(60),
        "jwt": _b64({"alg": "HS256", "typ": "JWT"}) + "." + _b64({"sub": text(9)}) + "." + text(43),
        "gha": "gha_" + text(12) + "." + text(40),
        "ghs": "ghs_" + text(12) + "." + text(40),
        "hex48": text(48, "0123456789abcdef"),
        "opaque": text(20) + "4" + text(19) + "Z",
        "pem": "-----BEGIN " + "OPENSSH PRIVATE KEY-----\n" + text(64) + "\n-----END OPENSSH PRIVATE KEY-----",
        "pw": "Tr0ub4dor" + text(6) + "#42",
    }


# (line, name of the value that must disappear, kind)
POSITIVES = [
    ("git clone https://oauth2:{glpat}@git.example.org/lab/code.git", "glpat", "gitlab_token"),
    ("curl -sS -H 'Authorization: token {ghp}' https://api.example.org/user", "ghp", "github_token"),
    ("sbatch --export=ALL,GITHUB_TOKEN={gho},N=3 run.sh", "gho", "github_token"),
    ('#SBATCH --comment="token={pat}"', "pat", "github_token"),
    ("aws_access_key_id = {akia}", "akia", "aws_access_key"),
    ("export AWS_ACCESS_KEY_ID={asia}", "asia", "aws_access_key"),
    ("export AWS_SECRET_ACCESS_KEY={awssecret}", "awssecret", "key"),
    ("aws configure set aws_secret_access_key {awssecret}", "awssecret", "key"),
    ("sbatch run.sh --openai {openai}", "openai", "openai_key"),
    ("OPENAI_API_KEY={openai_old} python eval.py", "openai_old", "openai_key"),
    ("python agent.py --api-key {anthropic}", "anthropic", "anthropic_key"),
    ("srun python maps.py key={aiza}", "aiza", "google_key"),
    ("sbatch --export=HF_TOKEN={hf} train.py", "hf", "huggingface_token"),
    ('login(token="{hf}")', "hf", "huggingface_token"),
    ("huggingface {hf_mixed}", "hf_mixed", "huggingface_token"),
    ("SLACK={xoxb} ./notify", "xoxb", "slack_token"),
    ("wandb login {wandb}", "wandb", "wandb_key"),
    ("wandb login --relogin {wandb}", "wandb", "wandb_key"),
    ("setenv WANDB_API_KEY {wandb}", "wandb", "key"),
    ("machine api.wandb.ai login user password {wandb}", "wandb", "password"),
    ("ngc config set {nvapi}", "nvapi", "ngc_key"),
    ("//registry.example.org/:_authToken={npm}", "npm", "npm_token"),
    ("twine upload -u __token__ -p {pypi} dist/*", "pypi", "pypi_token"),
    ('curl -H "X-SLURM-USER-TOKEN: {jwt}" http://slurmrestd:6820/jobs', "jwt", "jwt"),
    ("gatehouse login --token {gha}", "gha", "gatehouse_token"),
    ("GATEHOUSE={ghs} eventd", "ghs", "gatehouse_token"),
    ("echo '{pem}' > ~/.ssh/id", "pem", "private_key"),
    ('curl -H "Authorization: Bearer {opaque}" https://api.example.org', "opaque", "bearer"),
    ("curl -H 'Proxy-Authorization: Basic {opaque}' https://api.example.org", "opaque", "bearer"),
    ("send: Bearer {opaque}", "opaque", "bearer"),
    ("Set-Cookie: lang=en; sessionid={opaque}; HttpOnly", "opaque", "session_cookie"),
    ("psql postgresql://app:{pw}@db01:5432/lab", "pw", "url_password"),
    ("curl 'https://s3.example.org/x?X-Amz-Date=1&X-Amz-Signature={hex48}'", "hex48", "url_signature"),
    ("curl 'https://api.example.org/data?api_key={opaque}&n=3'", "opaque", "key"),
    ("https://h.example.org/cb?access_token%3D{opaque}", "opaque", "token"),
    ("http://cn014:8888/lab?token={hex48}", "hex48", "token"),
    ("jupyter lab --NotebookApp.token={hex48} --no-browser", "hex48", "token"),
    ("PGPASSWORD={pw} psql -h db01", "pw", "password"),
    ("export DB_PASSWORD='{pw}'", "pw", "password"),
    ('password: "{pw}"', "pw", "password"),
    ("ADMIN_PASSWORD={pw} ./setup", "pw", "password"),
    ("sbatch --export=ALL,IMAP_PASSWORD={pw} fetch.sh", "pw", "password"),
    ("export NEW_PASSWORD={pw}", "pw", "password"),
    ("export AWS_SESSION_TOKEN={opaque}", "opaque", "token"),
    ("./setup --admin-token {opaque}", "opaque", "token"),
    ("LOGIN_SECRET={opaque} ./setup", "opaque", "secret"),
    ("export HOST_API_KEY={opaque}", "opaque", "key"),
    ("sbatch --wrap='--password {pw}'", "pw", "password"),
    ("17|--password {pw}|gpu", "pw", "password"),
    ("wget --http-user=a --http-password={pw} https://d.example.org/x", "pw", "password"),
    ("./sync --user a --password {pw}", "pw", "password"),
    ("sbatch --wrap 'mysqldump -u a -p{pw} lab'", "pw", "password"),
    ("mysql -h db01 -u a -p{pw} labdb", "pw", "password"),
    ("sshpass -p {pw} ssh a@b", "pw", "password"),
    ("sshpass -p'{pw}' ssh a@b", "pw", "password"),
    ("docker login -u a -p {pw} registry.example.org", "pw", "password"),
    ("ldapsearch -D cn=a -w {pw} -b dc=example", "pw", "password"),
    ("redis-cli -h r1 -a {pw} ping", "pw", "password"),
    ("7z x -p{pw} data.7z", "pw", "password"),
    ("unzip -P {pw} data.zip", "pw", "password"),
    ("curl -u alice:{pw} https://d.example.org/x", "pw", "password"),
    ("openssl enc -aes-256-cbc -pass pass:{pw} -in a", "pw", "password"),
    ("echo {pw} | sudo -S systemctl restart x", "pw", "password"),
    ("echo '{pw}' | docker login -u a --password-stdin", "pw", "password"),
    ("kinit alice <<< {pw}", "pw", "password"),
    ("bash -c 'cd /x && sshpass -p {pw} rsync a b'", "pw", "password"),
]

NEGATIVES = [
    'etag "7bd1bead62f1016662c94848dfe9b9d2"',
    "apptainer pull docker://ubuntu@sha256:" + "0e99a5f0" * 8,
    "srun --container-image=registry.example.org:5000/lab/train@sha256:" + "ab12cd34" * 8 + " python t.py",
    "git checkout 87e26e1234edcb484f75b2371528c24dad57010a",
    "wandb: Run a46jn14f, commit 87e26e1234edcb484f75b2371528c24dad57010a",
    "InChIKey=OTFAGWAMDQDJWA-VKNZERQADI-N",
    "python t.py --image_token_ids 32000 --pad_token_id 0",
    "python t.py --pad-token [PAD] --eos_token '<|endoftext|>'",
    "TOKENIZERS_PARALLELISM=false python train.py",
    "python train.py --tokenizer meta-llama/Llama-3-8B --max-tokens 4096 --max_token=2048",
    "python train.py --num_tokens=100000000000 --special-token begin_of_text",
    "KeyError: 'token_type_ids'",
    "spack install hdf5/6p2ibf72w524cs7alvk6skojh7c6t3oy",
    "module load gcc/12.3.0-6p2ibf72w524cs7alvk6skojh7c6t3oy",
    "3eb3511ffb7fb2f36d4adddafd5c187619f5395daa96a93d2dd66a636f241599",
    "/scratch/u0421/123e4567-e89b-12d3-a456-426614174000/run",
    "mkdir -p /scratch/u0421/d44e15865b0d34864df7e545d84732f9",
    "sha256sum -c <<< " + '"' + "d71034a6" * 8 + '  data.tar"',
    'curl -H "Authorization: Bearer $HF_TOKEN" https://api.example.org/whoami',
    "export HF_TOKEN=$(pass show hf)",
    "export API_KEY=xxxxxxxxxxxxxxxx",
    "export GITHUB_TOKEN=ghp_" + "x" * 36,
    "password = os.environ['DB_PASSWORD']",
    "token = get_token(user)",
    "password_file: /run/secrets/db",
    "vault kv get -field=password secret/lab/db",
    "mysql -u a -p labdb < dump.sql",
    "mysql --defaults-file=/home/a/.my.cnf labdb",
    "docker run -p 8080:80 nginx",
    "docker login --username a registry.example.org",
    "curl -u alice https://d.example.org/x",
    "ssh-keygen -t ed25519 -N '' -f ~/.ssh/id_x",
    "sbatch -p gpu_gh200 --job-name=weights-high task-sk-17.sh",
    "sbatch --mail-user=u0421@example.org --array=0-99%10 run.sh",
    "python t.py --key-size 2048 --secret-sharing shamir --token-file /home/a/t",
    "password: ********",
    "sudo: a password is required",
    "Enter passphrase for key '/home/a/.ssh/id_x':",
    "passwd: all authentication tokens updated",
    "unset AWS_SECRET_ACCESS_KEY",
    "GPU-24af0b26-4165-f5ab-5e4d-75cc67899f14",
    "conda install numpy=1.26.4=py311h31258bd_0",
    "ssh-ed25519 " + "AAAAC3NzaC1lZDI1NTE5AAAAIh0PxhuDGMnHFwLsEwP2cIeJ5dffGIM" + " a@login1",
    "sbatch --export=ALL,KEYS=a,TOKENS=b run.sh",
    "srun ./solve --primary_key=id1234567890abcdef --cache-key linux-py311-9f8e7d6c",
    "https://www.example.org/signature-analysis/index.html?page=3",
    "echo done | su2_cfd config.cfg",
]
