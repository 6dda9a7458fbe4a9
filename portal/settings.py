"""Settings: one file, two profiles (`embedded`, `services`), environment variables only.

`docs/operators.md` lists every variable. Secrets may come from `NAME_FILE`; in the embedded profile they are
made on first use, mode 0600, inside GATEHOUSE_DATA.
"""

import logging
from pathlib import Path
from urllib.parse import quote

from celery.schedules import crontab
from environ import FileAwareEnv

from portal.core import csp, environment_file, logs, mail_settings, saml, sign_in
from portal.core.data_folder import prepare_data_folder
from portal.core.secret_files import read_or_make_secret
from portal.webhooks import hosts as webhook_hosts
from security.engine.redact import redact

BASE_DIR = Path(__file__).resolve().parent.parent
env = FileAwareEnv()
environment_file.load(FileAwareEnv, env.str("GATEHOUSE_ENV_FILE", default=""))

PROFILE: str = env.str("GATEHOUSE_PROFILE", default="embedded")
if PROFILE not in {"embedded", "services"}:
    raise ValueError(f"GATEHOUSE_PROFILE is {PROFILE!r}; it must be 'embedded' or 'services'.")
EMBEDDED = PROFILE == "embedded"
DATA_DIR = Path(env.str("GATEHOUSE_DATA", default="") or BASE_DIR / "var").resolve()
DEBUG: bool = env.bool("GATEHOUSE_DEBUG", default=False)

# --- secrets ---------------------------------------------------------------------------------------------
if EMBEDDED:
    prepare_data_folder(DATA_DIR)
    SECRET_KEY: str = env.str("SECRET_KEY", default="") or read_or_make_secret(DATA_DIR / "secret_key")
    _pepper = env.str("TOKEN_PEPPERS", default="") or f"1:{read_or_make_secret(DATA_DIR / 'token_pepper')}"
else:
    SECRET_KEY = env.str("SECRET_KEY", default="")
    _pepper = env.str("TOKEN_PEPPERS", default="")
# Numbered peppers: "2:new,1:old". The first signs new tokens; the others still verify (NetBox's rotation).
TOKEN_PEPPERS: dict[int, str] = {
    int(number): value for number, _, value in (part.partition(":") for part in _pepper.split(",") if part)
}

# --- site ------------------------------------------------------------------------------------------------
FACILITY_NAME: str = env.str("GATEHOUSE_FACILITY", default="Northgate Research Computing")
_here = f"http://127.0.0.1:{env.str('PORT', default='') or 8000}"  # where `make run` listens
BASE_URL: str = env.str("GATEHOUSE_URL", default=_here).rstrip("/")  # paths follow it
ALLOWED_HOSTS: list[str] = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS: list[str] = env.list("CSRF_TRUSTED_ORIGINS", default=[])
HTTPS: bool = env.bool("GATEHOUSE_HTTPS", default=BASE_URL.startswith("https://"))
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# How many proxies stand before the portal; the client address is taken that many entries from the right.
PROXY_COUNT: int = env.int("GATEHOUSE_PROXY_COUNT", default=0)
NINJA_NUM_PROXIES = PROXY_COUNT

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "csp",
    "django_htmx",
    "guardian",
    "channels",
    "django_structlog",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.socialaccount.providers.saml",
    "allauth.mfa",
    "portal.core",
    "principals",
    "telemetry",
    "security",
    "policies",
    "memory",
    "portal.reports",
    "portal.webhooks",
    "portal",
]
MIDDLEWARE = [
    "portal.core.middleware.RequestIdMiddleware",
    "django_structlog.middlewares.RequestMiddleware",
    "portal.core.middleware.ProblemMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    # Static files answer from here: what stands above gives them its headers too.
    "portal.core.static_files.StaticFilesMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "principals.front.SignInMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "portal.core.middleware.NoStoreMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "portal.urls"
ASGI_APPLICATION = "portal.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "portal.dashboard.shell.shell",
            ],
        },
    },
]

# --- database --------------------------------------------------------------------------------------------
# Quoted: of an address, `#`, `?` and `%` in a folder's name would mean something.
DATABASES = {"default": env.db("DATABASE_URL", default=f"sqlite:///{quote(str(DATA_DIR / 'gatehouse.sqlite3'))}")}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # A read that turns into a write fails at once under DEFERRED, whatever the timeout: so IMMEDIATE.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-65536;",
    }
    # Tests run on a file too: a shared in-memory database locks tables in its own way.
    DATABASES["default"]["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
else:
    DATABASES["default"]["CONN_MAX_AGE"] = 60
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True

# --- people ----------------------------------------------------------------------------------------------
AUTH_USER_MODEL = "principals.User"
ANONYMOUS_USER_NAME = None  # guardian would otherwise create an active user row of that name
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "guardian.backends.ObjectPermissionBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
CSRF_FAILURE_VIEW = "portal.dashboard.errors.csrf_failed"
LOGIN_URL = "/sign-in/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/sign-in/"
SESSION_COOKIE_AGE = 12 * 3600
SESSION_COOKIE_HTTPONLY = True
CSRF_COOKIE_HTTPONLY = True

# --- sign-in through others, second factor (django-allauth) -----------------------------------------------
SIGN_IN = sign_in.read(env, facility=FACILITY_NAME)
ACCOUNT_ADAPTER = "principals.sign_in.AccountAdapter"
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_RATE_LIMITS = False  # ours: portal.core.throttle
SOCIALACCOUNT_ADAPTER = "principals.sign_in.SocialAdapter"
# By a link: the policy's form-action forbids a form that leads to another host.
SOCIALACCOUNT_LOGIN_ON_GET = True
SOCIALACCOUNT_ONLY = False
SOCIALACCOUNT_PROVIDERS = {"openid_connect": sign_in.openid_app(SIGN_IN), "saml": saml.app(SIGN_IN.saml)}
MFA_ADAPTER = "principals.sign_in.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_TOTP_ISSUER = f"Gatehouse, {FACILITY_NAME}"
MFA_FORMS = {"reauthenticate": "principals.forms.CodeAgainForm", "authenticate": "principals.forms.CodeForm",
             "activate_totp": "principals.forms.NewAppForm"}  # fmt: skip
ACCOUNT_FORMS = {"reauthenticate": "principals.forms.PasswordAgainForm"}

# --- registration of agents ------------------------------------------------------------------------------
# From so many points of risk on, staff approve an agent too (principals.engine.tiers).
STAFF_APPROVE_FROM: int = env.int("GATEHOUSE_STAFF_APPROVE_FROM", default=3)

# How many sessions a person may have on one login node (0: any number); more are advised against, or refused.
SESSIONS_PER_NODE: int = env.int("GATEHOUSE_SESSIONS_PER_NODE", default=3)
SESSIONS_LIMIT: str = env.str("GATEHOUSE_SESSIONS_LIMIT", default="advise")
if SESSIONS_LIMIT not in ("advise", "refuse"):
    raise ValueError("GATEHOUSE_SESSIONS_LIMIT must be advise or refuse.")
SESSION_SILENT_S: int = env.int("GATEHOUSE_SESSION_SILENT_S", default=900)  # without a beat for so long it has ended

# --- time and words --------------------------------------------------------------------------------------
USE_TZ = True
TIME_ZONE = "UTC"
FACILITY_TIME_ZONE: str = env.str("GATEHOUSE_TIME_ZONE", default="America/New_York")
USE_I18N = False
LANGUAGE_CODE = "en"

# --- static files ----------------------------------------------------------------------------------------
STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
if EMBEDDED:
    prepare_data_folder(STATIC_ROOT)
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = DEBUG
WHITENOISE_AUTOREFRESH = DEBUG

# --- Celery, channels, cache -----------------------------------------------------------------------------
REDIS_URL: str = env.str("REDIS_URL", default="redis://127.0.0.1:6379/0")
CELERY_BROKER_URL: str = env.str("CELERY_BROKER_URL", default="filesystem://localhost" if EMBEDDED else REDIS_URL)
if CELERY_BROKER_URL.startswith("filesystem"):
    _broker = DATA_DIR / "broker"
    for _folder in ("queue", "processed", "control"):
        prepare_data_folder(_broker / _folder)
    # The broker carries hints, not work: rows hold the work (see docs/operators.md).
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(_broker / "queue"),
        "data_folder_out": str(_broker / "queue"),
        "processed_folder": str(_broker / "processed"),
        "control_folder": str(_broker / "control"),
        "store_processed": False,
        "polling_interval": 0.1,
    }
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_DEFAULT_QUEUE = "gatehouse"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TASK_TIME_LIMIT = 3600
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BEAT_SCHEDULE: dict[str, dict[str, object]] = {
    "sweep-ingest-batches": {"task": "telemetry.tasks.sweep_ingest_batches", "schedule": 10.0},
    "tell-owed-arrays": {"task": "telemetry.tasks.tell_owed_arrays", "schedule": 2.0},
    "sweep-attributions": {"task": "telemetry.tasks.sweep_attributions", "schedule": 10.0},
    "match-gpu-utilisation": {"task": "telemetry.tasks.match_gpu_utilisation", "schedule": 60.0},
    "refresh-rollups": {"task": "telemetry.tasks.refresh_rollups", "schedule": 10.0},
    "refresh-gpu-rollups": {"task": "telemetry.tasks.refresh_gpu_rollups", "schedule": 60.0},
    "refresh-activity": {"task": "telemetry.tasks.refresh_activity", "schedule": 300.0},
    "refresh-harness-days": {"task": "telemetry.tasks.refresh_harness_days", "schedule": 60.0},
    "end-silent-sessions": {"task": "telemetry.tasks.end_silent_sessions", "schedule": crontab(minute="23")},
    "build-job-indexes": {"task": "telemetry.tasks.build_job_indexes", "schedule": 60.0},
    "number-live-events": {"task": "portal.realtime.tasks.number_live_events", "schedule": 60.0},
    "seal-audit": {"task": "portal.core.tasks.seal_audit", "schedule": 5.0},
    "anchor-audit": {"task": "portal.core.tasks.anchor_audit", "schedule": crontab(minute="0")},
    "draft-reports": {
        "task": "portal.reports.tasks.draft_last_month",
        "schedule": crontab(minute="40", hour="3", day_of_month="1"),
    },
    "draft-weekly-reports": {
        "task": "portal.reports.tasks.draft_last_week",
        "schedule": crontab(minute="10", hour="4", day_of_week="1"),
    },
    "sweep-drafts": {"task": "portal.reports.tasks.sweep_drafts", "schedule": 30.0},
    "deliver-webhooks": {"task": "portal.webhooks.tasks.deliver", "schedule": 2.0},
    "prune-webhooks": {"task": "portal.webhooks.tasks.prune", "schedule": crontab(minute="47")},
    "prune-ingest": {"task": "telemetry.tasks.prune_ingest", "schedule": crontab(hour="3", minute="29")},
    "prune-lookups": {"task": "memory.tasks.prune_lookups", "schedule": crontab(hour="3", minute="41")},
    "prune-kernel": {"task": "portal.core.tasks.prune", "schedule": crontab(minute="17")},
    "remind-of-aup": {"task": "policies.tasks.remind_of_aup", "schedule": crontab(minute="*/10")},
    "hold-lapsed-aup": {"task": "policies.tasks.hold_lapsed_aup", "schedule": 300.0},
    "remind-of-renewals": {"task": "principals.tasks.remind_of_renewals", "schedule": crontab(minute="7")},
    "end-silent-check-ins": {"task": "principals.tasks.end_silent_check_ins", "schedule": 60.0},
    "deliver-notices": {"task": "principals.tasks.deliver_notices", "schedule": 10.0},
    "tell-of-ending-tokens": {"task": "principals.tasks.tell_of_ending_tokens", "schedule": crontab(minute="31")},
    "tell-of-late-appeals": {"task": "principals.tasks.tell_of_late_appeals", "schedule": crontab(minute="33")},
    "prune-notices": {"task": "principals.tasks.prune_notices", "schedule": crontab(hour="3", minute="53")},
    "prune-device-logins": {"task": "principals.tasks.prune_device_logins", "schedule": crontab(minute="13")},
    "settle-trials": {"task": "policies.tasks.settle_trials", "schedule": 60.0},
}
CELERY_BEAT_SCHEDULE_FILENAME = str(DATA_DIR / "beat-schedule")

CHANNEL_LAYERS = (
    {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    if EMBEDDED
    else {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [REDIS_URL], "capacity": 2000},
        }
    }
)
# Throttles count in the cache. The embedded profile has one web process, so its memory is shared enough.
CACHES = {
    "default": (
        # Django keeps 300 entries by default: whoever makes as many counters would be forgotten by the throttles.
        {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "OPTIONS": {"MAX_ENTRIES": 100_000}}
        if EMBEDDED
        else {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}
    )
}

# --- content security policy -----------------------------------------------------------------------------
CONTENT_SECURITY_POLICY = csp.POLICY

# --- logs, metrics ---------------------------------------------------------------------------------------
logs.configure(lambda text: redact(text, key=b"\0" * 32).text)  # the fingerprints go nowhere
LOGGING = logs.logging_config(env.str("LOG_LEVEL", default="INFO"))
DJANGO_STRUCTLOG_CELERY_ENABLED = True
DJANGO_STRUCTLOG_REQUEST_CANCELLED_LOG_LEVEL = logging.INFO  # whoever follows a stream leaves it in the middle
DJANGO_STRUCTLOG_STATUS_4XX_LOG_LEVEL = logging.INFO  # a refusal is an answer, no fault of ours
# RequestIdMiddleware lets only plain tokens through, so what arrives may be trusted to be one.
DJANGO_STRUCTLOG_TRUST_UPSTREAM_REQUEST_ID = True
DJANGO_STRUCTLOG_TRUST_UPSTREAM_CORRELATION_ID = False  # nothing of ours reads it
DJANGO_STRUCTLOG_IP_LOGGING_ENABLED = False
METRICS_TOKEN: str = env.str("METRICS_TOKEN", default="")

# --- audit -----------------------------------------------------------------------------------------------
AUDIT_ANCHOR_FILE: str = env.str("AUDIT_ANCHOR_FILE", default=str(DATA_DIR / "audit" / "anchors.jsonl"))
# A syslog socket or "host:port"; empty sends nothing.
AUDIT_ANCHOR_SYSLOG: str = env.str("AUDIT_ANCHOR_SYSLOG", default="")

# --- prices, for what labs see on My lab -----------------------------------------------------------------
PRICE_CORE_HOUR: float = env.float("GATEHOUSE_PRICE_CORE_HOUR", default=0.012)
PRICE_GPU_HOUR: float = env.float("GATEHOUSE_PRICE_GPU_HOUR", default=0.35)

# --- what harnesses tell of themselves (OTLP) --------------------------------------------------------------
# "off": none is taken; "ask": of those agents whose person agreed; "on": of all whose person did not say no.
OTLP: str = env.str("GATEHOUSE_OTLP", default="off")
if OTLP not in {"off", "ask", "on"}:
    raise ValueError(f"GATEHOUSE_OTLP is {OTLP!r}; it must be 'off', 'ask' or 'on'.")

# --- commands of Slurm that are run once for many (`gatehouse squeue`) -------------------------------------
# Names of clusters whose squeue and sacct this host may run for whoever waits for the same answer.
SHARED_CALLS: list[str] = env.list("GATEHOUSE_SHARED_CALLS", default=[])
# Releases of Slurm whose squeue is printed from what the reader saw: those on which both were compared.
PRINTED_RELEASES: list[str] = env.list("GATEHOUSE_PRINTED_RELEASES", default=["22.05"])

# --- webhooks: where they may go; empty: nowhere ------------------------------------------------------------
WEBHOOK_HOSTS: tuple[webhook_hosts.Allowed, ...] = webhook_hosts.read_allowed(
    env.list("GATEHOUSE_WEBHOOK_HOSTS", default=[])
)

# --- mail: what people are told of; no server: they read it in the portal alone ------------------------------
MAIL = mail_settings.read(env, base_url=BASE_URL)

# --- what the facility agreed to, which the report holds its figures against; empty: nothing --------------
POLLS_PER_JOB_LIMIT: float | None = env.float("GATEHOUSE_POLLS_PER_JOB_LIMIT", default=None)
TRIAL_ABUSE_LIMIT: float | None = env.float("GATEHOUSE_TRIAL_ABUSE_LIMIT", default=None)

# --- questions about jobs, for each token and minute; beyond it 429 says what to do instead ------------------
POLLS_PER_MINUTE: int = env.int("GATEHOUSE_POLLS_PER_MINUTE", default=300)

# --- the kill switch: more agents than so many are stopped by two people -------------------------------------
KILL_SWITCH_ALONE: int = env.int("GATEHOUSE_KILL_SWITCH_ALONE", default=10)

# --- agents' tokens: the longest life by risk tier, and how long one goes on beside the one that replaces it ------
# Days for the tiers standard, elevated and restricted.
TOKEN_LIFE_DAYS: list[int] = env.list("GATEHOUSE_TOKEN_DAYS", cast=int, default=[60, 30, 2])
if len(TOKEN_LIFE_DAYS) != 3 or not 366 >= TOKEN_LIFE_DAYS[0] >= TOKEN_LIFE_DAYS[1] >= TOKEN_LIFE_DAYS[2] >= 1:
    raise ValueError("GATEHOUSE_TOKEN_DAYS must be three numbers of days from 366 to 1, none above the one before it.")
TOKEN_OVERLAP_HOURS: float = env.float("GATEHOUSE_TOKEN_OVERLAP_HOURS", default=24.0)
if not 0 <= TOKEN_OVERLAP_HOURS <= 24 * 14:
    raise ValueError("GATEHOUSE_TOKEN_OVERLAP_HOURS must be from 0 to 336 (14 days).")
# How many tokens of logins an agent may have that have not ended.
LOGINS_PER_AGENT: int = env.int("GATEHOUSE_LOGINS_PER_AGENT", default=20)
if not 1 <= LOGINS_PER_AGENT <= 1000:
    raise ValueError("GATEHOUSE_LOGINS_PER_AGENT must be from 1 to 1000.")

# --- logging in by MUNGE: off unless clusters are named, whose nodes have the key of this host's munged ---------
MUNGE_CLUSTERS: list[str] = env.list("GATEHOUSE_MUNGE_CLUSTERS", default=[])
MUNGE_SOCKET: str = env.str("GATEHOUSE_MUNGE_SOCKET", default="")  # empty: where munge itself looks
# --- appeals of holds and labels: answered within so many days ------------------------------------------------
APPEAL_DAYS: int = env.int("GATEHOUSE_APPEAL_DAYS", default=5)
if APPEAL_DAYS < 1:
    raise ValueError("GATEHOUSE_APPEAL_DAYS must be 1 or more.")

# --- uploads ---------------------------------------------------------------------------------------------
INGEST_MAX_BYTES: int = env.int("GATEHOUSE_INGEST_MAX_BYTES", default=64 * 1024 * 1024)
DATA_UPLOAD_MAX_MEMORY_SIZE = INGEST_MAX_BYTES

# --- disk ------------------------------------------------------------------------------------------------
# Room that the data folder's file system has to have left for /readyz to say ready; embedded profile only.
DISK_RESERVE_BYTES: int = env.int("GATEHOUSE_DISK_RESERVE_BYTES", default=64 * 1024 * 1024)
