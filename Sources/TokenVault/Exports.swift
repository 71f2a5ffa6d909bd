// Users import this module alone. The modules behind it are an implementation detail.
@_exported public import TokenVaultCore
@_exported public import TokenVaultDesktop
@_exported public import TokenVaultFile
