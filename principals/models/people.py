"""People and labs (PI accounts)."""

from typing import Any, Self

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.db import models
from django.db.models import Q

from portal.core import clock
from principals.actors import Actor


class UserQuerySet(models.QuerySet["User"]):
    """People, as somebody may see them."""

    def visible_to(self, actor: Actor) -> Self:
        """Staff see everyone; others see themselves and the people of labs they manage; agents only their owner."""
        if actor.sees_facility:
            return self
        if actor.user is None:
            return self.none()
        own = Q(pk=actor.user.pk)
        if actor.agent is not None:
            return self.filter(own)
        return self.filter(own | Q(memberships__lab_id__in=actor.managed_lab_ids)).distinct()


class UserManager(BaseUserManager["User"]):
    """Makes users by login name."""

    def get_queryset(self) -> UserQuerySet:
        return UserQuerySet(self.model, using=self._db)

    def create_user(self, username: str, email: str = "", password: str | None = None, **fields: Any) -> "User":
        """Make a person. Without a password, signing in with one is impossible."""
        user = self.model(username=username, email=self.normalize_email(email), **fields)
        user.set_password(password)
        user.save()
        return user

    def create_superuser(self, username: str, email: str = "", password: str | None = None, **fields: Any) -> "User":
        """Make a person with every role."""
        roles = {"is_superuser": True, "is_research_computing": True, "is_infosec": True}
        return self.create_user(username, email, password, **(roles | fields))


class User(AbstractBaseUser, PermissionsMixin):
    """A person. `username` is the login name; on screen people are shown by it, never by their full name."""

    username = models.CharField(max_length=64, unique=True)
    full_name = models.CharField(max_length=150, blank=True)
    email = models.EmailField(blank=True)
    is_active = models.BooleanField(default=True)
    is_research_computing = models.BooleanField("research-computing staff", default=False)
    is_infosec = models.BooleanField("InfoSec", default=False)
    is_auditor = models.BooleanField("auditor (reads everything, changes nothing)", default=False)
    # Which roles groups gave at the last sign-in; the others were given by hand and stay.
    roles_from_groups = models.JSONField(default=list, blank=True)
    is_demo = models.BooleanField(default=False)
    created = models.DateTimeField(default=clock.now)

    objects = UserManager.from_queryset(UserQuerySet)()

    USERNAME_FIELD = "username"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS = ["email"]

    def __str__(self) -> str:
        return self.username


class SignInIdentity(models.Model):
    """Under what a provider knows a person: its issuer and subject, which it never gives to anybody else.

    Login names and addresses pass from one person to another; so they tie a person to an identity once, and no more.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    created = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="principals_signinidentity_issuer_subject"),
            models.UniqueConstraint(fields=["user", "issuer"], name="principals_signinidentity_user_issuer"),
        ]

    def __str__(self) -> str:
        return f"{self.user} at {self.issuer}"


class LabQuerySet(models.QuerySet["Lab"]):
    """Labs, as somebody may see them."""

    def visible_to(self, actor: Actor) -> Self:
        """Staff see every lab; a person those they belong to or were granted; an agent its own lab's name."""
        if actor.sees_facility:
            return self
        return self.filter(pk__in=actor.member_lab_ids | actor.granted_lab_ids)


class Lab(models.Model):
    """A PI account: the group that is charged. Slurm accounts belong to it."""

    name = models.SlugField(max_length=64, unique=True, allow_unicode=True)
    title = models.CharField(max_length=150)
    is_demo = models.BooleanField(default=False)
    created = models.DateTimeField(default=clock.now)
    members = models.ManyToManyField(User, through="LabMembership", related_name="labs")
    # The PI who let agents of low risk in without a click; the rule holds while they are its PI.
    low_risk_rule_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")

    objects = LabQuerySet.as_manager()

    class Meta:
        ordering = ["title"]
        # Granted through principals.permissions (django-guardian) to people outside the lab.
        permissions = [("look_at_lab", "May look at the lab's agents and jobs")]

    def __str__(self) -> str:
        return self.title


class LabMembership(models.Model):
    """A person's place in a lab."""

    class Role(models.TextChoices):
        PI = "pi", "PI"
        MANAGER = "manager", "Lab manager"
        MEMBER = "member", "Member"

    lab = models.ForeignKey(Lab, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=8, choices=Role.choices, default=Role.MEMBER)
    since = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["lab", "user"], name="principals_labmembership_lab_user")]

    def __str__(self) -> str:
        return f"{self.user} in {self.lab} ({self.role})"
