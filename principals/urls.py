"""Addresses of `principals`. Names with `_` are those by which django-allauth finds them."""

from django.urls import path

from principals import device_page, saml_views, second_factor, views

urlpatterns = [
    path("sign-in/", views.SignIn.as_view(), name="sign-in"),
    path("sign-in/", views.SignIn.as_view(), name="account_login"),
    path("sign-in/with/<slug:provider_id>/", views.with_provider, name="openid_connect_login"),
    path("sign-in/with/<slug:provider_id>/callback/", views.back_from_provider, name="openid_connect_callback"),
    path("sign-in/saml/", saml_views.start, name="saml-start"),
    path("sign-in/saml/acs/", saml_views.acs, name="saml-acs"),
    path("sign-in/saml/finish/", saml_views.finish, name="saml-finish"),
    path("sign-in/saml/metadata/", saml_views.metadata, name="saml-metadata"),
    path("sign-in/second-factor/", second_factor.Ask.as_view(), name="mfa_authenticate"),
    path("sign-in/again/", second_factor.PasswordAgain.as_view(), name="account_reauthenticate"),
    path("sign-in/again/code/", second_factor.CodeAgain.as_view(), name="mfa_reauthenticate"),
    path("login/device/", device_page.device_login, name="device-login"),
    path("sign-out/", views.SignOut.as_view(), name="sign-out"),
    path("account/second-factor/", second_factor.Overview.as_view(), name="mfa_index"),
    path("account/second-factor/app/", second_factor.SetUp.as_view(), name="mfa_activate_totp"),
    path("account/second-factor/app/remove/", second_factor.Remove.as_view(), name="mfa_deactivate_totp"),
    path("account/second-factor/codes/", second_factor.Codes.as_view(), name="mfa_view_recovery_codes"),
    path("account/second-factor/codes/new/", second_factor.NewCodes.as_view(), name="mfa_generate_recovery_codes"),
    path("account/second-factor/codes.txt", second_factor.CodesAsText.as_view(), name="mfa_download_recovery_codes"),
]
