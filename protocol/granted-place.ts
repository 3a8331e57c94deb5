// The tree of what a set of entries grants, by the segments of their resources.

/** Grants at one place of the resource tree. */
export class GrantedPlace {
  all = false
  readonly permissions = new Set<string>()
  readonly children = new Map<string, GrantedPlace>()

  /** `field` covers `field:dynamic`, which covers `field:dynamic:myField`. */
  grants(permission: string): boolean {
    if (this.all || this.permissions.has(permission)) return true
    for (let at = permission.indexOf(':'); at > 0; at = permission.indexOf(':', at + 1)) {
      if (this.permissions.has(permission.slice(0, at))) return true
    }
    return false
  }

  /** True when this place or one below it grants the permission. */
  grantsBelow(permission: string): boolean {
    if (this.grants(permission)) return true
    for (const child of this.children.values()) if (child.grantsBelow(permission)) return true
    return false
  }
}
